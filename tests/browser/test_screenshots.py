"""The pictures of docs/web-page.md: each shows what the page says of it.

``make screenshots`` takes them anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from equipment.waiting import wait_until
from equipment.workers.page_worker import PageWorker
from rest.app import create_clusters_app
from rest.server.server import RestServer
from rest.ui.clusters import ClusterPages, Clusters

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "images"
DESKTOP: ViewportSize = {"width": 1200, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}

SINK = {"connector.class": "FileStreamSink", "file": "/data/out", "tasks.max": "2"}
DLQ = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "orders-dlq"}
FULL_DISK = """Traceback (most recent call last):
  File "connectors/file/sink.py", line 88, in put
    self._file.write(text)
OSError: [Errno 28] No space left on device

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "connectors/file/sink.py", line 90, in put
    raise RetriableError(f"Cannot write to {self._path}: {os_reason(error)}") from error
connect.errors.RetriableError: Cannot write to /data/invoices.txt: No space left on device. Free some space.
"""
CONNECTORS = {
    "orders-to-lake": {**SINK, "topics": "orders"},
    "customers-to-search": {**SINK, "topics": "customers"},
    "orders-archive": {**SINK, **DLQ, "topics": "orders", "test.skips": "134", "test.letters": "134"},
    "payments-from-shop": {"connector.class": "FileStreamSource", "file": "/data/in", "topic": "payments"},
    "invoices-to-files": {**SINK, "topics": "invoices", "test.fails": FULL_DISK},
    "clicks-to-files": {
        **SINK,
        "topics": "clicsk",
        "test.waits": "Topic clicsk does not exist; the sink waits until it does. Create it, or correct the key topics "
        "of this connector: a topic of nearly this name, clicks, exists.",
    },
}


@pytest.fixture(scope="module")
def shop() -> Iterator[PageWorker]:
    """A worker of a shop, where some connectors are in trouble."""
    worker = PageWorker()
    for name, config in CONNECTORS.items():
        worker.client.post("/connectors", {"name": name, "config": config})

    def settled() -> bool:
        shown = worker.client.get("/connectors?expand=status")
        states = [{task["state"] for task in each["status"]["tasks"]} for each in shown.values() if "status" in each]
        return sorted(map(sorted, states)) == [["FAILED"], *[["RUNNING"]] * (len(CONNECTORS) - 1)]

    wait_until("the connectors run, and one has failed", settled, 60)
    yield worker
    worker.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "path", "viewport", "waits_for"),
    [
        ("connectors", "", DESKTOP, "text=Cannot write to /data/invoices.txt"),
        ("running", "connectors/customers-to-search", DESKTOP, ".graph"),
        ("state", "connectors/invoices-to-files", DESKTOP, "text=Why tasks 0 and 1 failed"),
        ("dead-letters", "connectors/orders-archive/dlq", DESKTOP, "text=is missing"),
        ("new-connector", "new/FileStreamSink", DESKTOP, ".field"),
        ("phone", "connectors/clicks-to-files", PHONE, "text=does not exist; the sink waits until it does"),
    ],
)
def test_a_page_is_as_in_its_picture(
    browser: Browser, shop: PageWorker, tmp_path: Path, name: str, path: str, viewport: ViewportSize, waits_for: str
) -> None:
    take_picture(browser, f"{shop.url}/ui/{path}".rstrip("/"), tmp_path, name, viewport, waits_for)


@pytest.mark.thorough
def test_the_page_of_several_clusters_is_as_in_its_picture(browser: Browser, shop: PageWorker, tmp_path: Path) -> None:
    stopped = {"connector.class": "FileStreamSink", "file": "/data/out", "topics": "test"}
    lab = PageWorker(stopped={f"trial-{number}": stopped for number in range(1, 4)})
    clusters = Clusters({"shop": shop.client, "lab": lab.client})
    server = RestServer(["http://127.0.0.1:0"])
    try:
        server.answer_with(create_clusters_app(ClusterPages(clusters, "0.2.0", frozenset({"127.0.0.1"}))))
        url = f"http://127.0.0.1:{server.port}/ui"
        take_picture(browser, url, tmp_path, "clusters", DESKTOP, "text=trial-3")
    finally:
        server.close()
        clusters.close()
        lab.close()


def take_picture(browser: Browser, url: str, folder: Path, name: str, viewport: ViewportSize, waits_for: str) -> None:
    context = browser.new_context(reduced_motion="reduce", viewport=viewport, color_scheme="light")
    try:
        page: Page = context.new_page()
        page.goto(url)
        page.locator(waits_for).first.wait_for(timeout=60_000)
        into = PICTURES if os.environ.get("SLUICE_SCREENSHOTS") else folder
        into.mkdir(exist_ok=True)
        page.screenshot(path=into / f"{name}.png")
    finally:
        context.close()
    assert (PICTURES / f"{name}.png").is_file()
    assert f"(images/{name}.png)" in (DOCS / "web-page.md").read_text()
