"""The report of a forest of some eighty trees: its size, and how long a browser takes to draw it.

Trains `auto` with a δ on a made-up table of two classes, and opens the page in headless Chromium.
Needs `pip install '.[report]' selenium` and Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from dpforest_duckdb import train
from dpforest_duckdb.domain import Attribute, Domain
from dpforest_duckdb.model.forest import Forest
from dpforest_duckdb.report.page import report_html

NUMBERS, CATEGORIES = 10, 4
DRAWN = (
    "return document.querySelectorAll('[data-chart=importance] svg, #effect-chart svg, "
    "#tree-chart svg').length"
)


def forest(rows: int) -> Forest:
    """A forest of `auto` on mixed columns; seeded, so that the page has the same size each time."""
    con = duckdb.connect()
    numbers = ", ".join(f"hash(i, {n}) % 1000 AS n{n}" for n in range(NUMBERS))
    words = ", ".join(f"'w' || hash(i, {n}) % 8 AS c{n}" for n in range(50, 50 + CATEGORIES))
    con.execute(
        f"CREATE TABLE t AS SELECT {numbers}, {words}, (hash(i, 0) % 1000 + hash(i, 1) % 1000 + "
        f"hash(i, 99) % 600 > 1300)::VARCHAR AS y FROM range({rows}) r(i)"
    )
    attributes = [Attribute(f"n{n}", "numeric", lower=0, upper=999) for n in range(NUMBERS)]
    values = tuple(f"w{n}" for n in range(8))
    attributes += [Attribute(f"c{n}", "categorical", values) for n in range(50, 50 + CATEGORIES)]
    domain = Domain(tuple(attributes), "y", ("false", "true"))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        ledger = str(Path(folder) / "ledger")
        return train(con, "t", domain=domain, epsilon=1, delta="1e-6", seed=1, ledger=ledger)


def browser() -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless", "no-sandbox", "disable-gpu"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))


def drawn(page: Path) -> tuple[float, list[str], list[str]]:
    """Seconds until every chart is drawn, the console's errors, and addresses asked elsewhere."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver = browser()
    try:
        driver.get(page.as_uri())
        WebDriverWait(driver, 60, poll_frequency=0.02).until(
            lambda it: it.execute_script(DRAWN) >= 3
        )
        seconds = driver.execute_script("return performance.now()") / 1000
        log = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
        return seconds, log, list(asked(driver))
    finally:
        driver.quit()


def asked(driver: Any) -> Iterator[str]:
    """The addresses that a page asked for, but for files and what it holds itself."""
    for line in driver.get_log("performance"):
        event = json.loads(line["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            address = event["params"]["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:")):
                yield address


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    made = forest(given.rows)
    page = report_html(made)
    print(f"{len(made.trees)} trees, {made.nodes} nodes: {len(page.encode()) / 1e6:.2f} MB")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        found = [drawn(file) for _ in range(given.times)]
    seconds = sorted(time for time, _, _ in found)
    print(f"drawn in {seconds[0]:.2f} to {seconds[-1]:.2f} s, {given.times} times")
    print(f"errors in the console: {sum(len(log) for _, log, _ in found)}")
    print(f"requests to a network: {sum(len(asked) for _, _, asked in found)}")


if __name__ == "__main__":
    main()
