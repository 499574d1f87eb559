"""Measures how soon the web page's overview is painted with many connectors, compared with hardly any.

``python bench/page.py [--connectors N]``: a worker with stopped connectors, and headless Chromium on the same machine.
Shows the median of several loads without a cache: the first contentful paint, the end of loading, and what these are
made of: the CPU time of the worker and of the page's main thread, which other processes hardly change, the bytes and
the elements.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, CDPSession, sync_playwright

# The module rest.py in this folder has the name of a package.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from equipment.workers.page_worker import PageWorker

_LOADS: Final = 7
_PAINTED: Final = """() => new Promise(told => new PerformanceObserver(entries => {
  if (entries.getEntriesByName("first-contentful-paint").length) told();
}).observe({type: "paint", buffered: true}))"""
_TIMES: Final = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime,
  performance.getEntriesByType("navigation")[0].loadEventEnd,
  performance.getEntriesByType("navigation")[0].transferSize / 1000,
  document.querySelectorAll("*").length,
]"""


class Load(NamedTuple):
    """What a load took: milliseconds, kilobytes and elements."""

    first_paint: float
    loaded: float
    worker_cpu: float
    page_cpu: float
    size: float
    elements: float


_HEADINGS: Final = ("first paint ms", "loaded ms", "worker CPU ms", "page CPU ms", "KB", "elements")


def measured(browser: Browser, connectors: int) -> Load:
    """Return the median of several loads."""
    sink = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}
    worker = PageWorker(stopped={f"many-{number:03}": sink for number in range(connectors)})
    try:
        loads = [_load(browser, f"{worker.url}/ui", connectors) for _ in range(_LOADS)]
    finally:
        worker.close()
    return Load(*(statistics.median(column) for column in zip(*loads, strict=True)))


def _load(browser: Browser, address: str, connectors: int) -> Load:
    page = browser.new_page()
    try:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        worker_before, page_before = time.process_time(), _main_thread_seconds(session)
        page.goto(address, wait_until="load")
        page.get_by_text(f"{connectors} connector").first.wait_for()
        page.evaluate(_PAINTED)
        worker_cpu, page_cpu = time.process_time() - worker_before, _main_thread_seconds(session) - page_before
        first, loaded, size, elements = page.evaluate(_TIMES)
        return Load(first, loaded, worker_cpu * 1000, page_cpu * 1000, size, elements)
    finally:
        page.close()


def _main_thread_seconds(session: CDPSession) -> float:
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))


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
    print("".join([f"{'connectors':>10}", *(f"{heading:>15}" for heading in _HEADINGS)]))
    for number, load in ((1, few), (connectors, many)):
        print("".join([f"{number:10}", *(f"{value:15,.0f}" for value in load)]))
    print("".join([f"{'ratio':>10}", *(f"{much / little:15.1f}" for much, little in zip(many, few, strict=True))]))


if __name__ == "__main__":
    main()
