"""Where the `dpforest` command and `python -m dpforest_duckdb` start."""

from __future__ import annotations

import sys


def main() -> None:
    """The `dpforest` command. Ctrl-C ends it without a traceback while its modules load, too."""
    try:
        from dpforest_duckdb.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
