"""Measures how soon the web page's overview is painted with many connectors, compared with hardly any.

``python bench/page.py [--connectors N]``: a worker with stopped connectors, and headless Chromium on the same machine.
Shows the median of several loads without a cache: the first contentful paint, and the end of loading.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

# The module rest.py in this folder has the name of a package.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from equipment.workers.page_worker import PageWorker

_LOADS: Final = 7
_TIMES: Final = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.getEntriesByType("navigation")[0].loadEventEnd,
  performance.getEntriesByType("navigation")[0].transferSize,
]"""


def measured(browser: Browser, connectors: int) -> tuple[float, float, float]:
    """Return the milliseconds to the first paint and to the end of the load, and the bytes of the page."""
    sink = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}
    worker = PageWorker(stopped={f"many-{number:03}": sink for number in range(connectors)})
    try:
        loads = [_load(browser, f"{worker.url}/ui", connectors) for _ in range(_LOADS)]
    finally:
        worker.close()
    first, whole, size = (statistics.median(column) for column in zip(*loads, strict=True))
    return first, whole, size


def _load(browser: Browser, address: str, connectors: int) -> list[float]:
    page = browser.new_page()
    try:
        page.goto(address, wait_until="load")
        page.get_by_text(f"{connectors} connector").first.wait_for()
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        times: list[float] = page.evaluate(_TIMES)
        return times
    finally:
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=500)
    connectors = parser.parse_args().connectors
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise SystemExit("There is no Chromium here: apt-get install --no-install-recommends chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        few = measured(browser, 1)
        many = measured(browser, connectors)
        browser.close()
    print(f"{'connectors':>10} {'first paint ms':>15} {'loaded ms':>10} {'KB':>7}")
    for number, (first, whole, size) in ((1, few), (connectors, many)):
        print(f"{number:10} {first:15.0f} {whole:10.0f} {size / 1000:7.0f}")
    print(f"{'ratio':>10} {many[0] / few[0]:15.1f} {many[1] / few[1]:10.1f} {many[2] / few[2]:7.1f}")


if __name__ == "__main__":
    main()
