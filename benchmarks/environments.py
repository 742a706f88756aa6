"""Python environments for peers that need other versions of what we use, made at first use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from shared import say

NEEDS = {
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn<1.5", "duckdb>=2", "pandas"],
    "DP-EBM": ["interpret-core[required,dp]==0.7.8", "scikit-learn", "duckdb>=2", "pandas"],
}


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, below DPFOREST_PEERS or the user's cache.

    Ends the program with one sentence if it cannot be made: it needs PyPI once.
    """
    cache = os.environ.get("DPFOREST_PEERS") or Path.home() / ".cache" / "dpforest-peers"
    folder = Path(cache) / peer
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return str(python)
    say(f"an environment for {peer} in {folder}")
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *NEEDS[peer]]
        subprocess.run(install, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"The environment for {peer} cannot be made in {folder}: see what pip said.")
    (folder / "ready").touch()
    return str(python)
