"""A worker that goes while its page is open, and many connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from equipment.workers.page_worker import PageWorker
from rest.ui.web_page import PageSettings

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_page_says_that_its_worker_is_gone_and_recovers(open_page: Callable[..., Page]) -> None:
    first = PageWorker()
    port = int(first.url.rpartition(":")[2])
    page = open_page("", at=first.url)
    page.get_by_text("No connectors yet.").wait_for()
    for part in ("form.filter", ".bulk", ".counters", "thead", "caption"):
        assert not page.locator(part).is_visible(), "there is nothing to look for, to choose or to sort"
    first.close()
    page.get_by_text("The worker does not answer since").wait_for()
    assert page.get_by_text("No connectors yet.").is_visible(), "what was shown stays"
    second = PageWorker(port)
    try:
        page.get_by_text("The worker answers again.").wait_for()
        second.client.post(
            "/connectors",
            {
                "name": "after-it",
                "config": {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"},
                "initial_state": "STOPPED",
            },
        )
        page.get_by_role("link", name="after-it").wait_for()
    finally:
        second.close()


def test_five_hundred_connectors_are_one_call(open_page: Callable[..., Page]) -> None:
    sink = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}
    worker = PageWorker(stopped={f"many-{number:03}": sink for number in range(500)})
    try:
        asked: list[str] = []
        page = open_page("", at=worker.url)
        page.get_by_text("500 connectors").wait_for()
        page.on("request", lambda sent: asked.append(sent.url))
        with page.expect_response("**/ui"):
            pass
        assert set(asked) == {f"{worker.url}/ui"}
        assert page.locator("tbody tr").count() == 100, "the rest is on other pages"
    finally:
        worker.close()


@pytest.fixture(scope="module")
def crowd() -> Iterator[PageWorker]:
    """A worker with a thousand stopped connectors."""
    sink = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}
    source = {"connector.class": "FileStreamSource", "file": "/tmp/o", "topic": "t"}
    classes = (sink, source)
    worker = PageWorker(stopped={f"many-{number:04}": classes[number % 2] for number in range(1000)})
    yield worker
    worker.close()


def test_a_thousand_connectors_are_paged_sorted_filtered_and_exported(
    open_page: Callable[..., Page], crowd: PageWorker
) -> None:
    page = open_page("", at=crowd.url)
    names = page.locator("tbody th")
    assert (names.count(), names.first.inner_text()) == (100, "many-0000")
    assert "1,000 connectors, rows 1 to 100" in page.locator("caption").inner_text()
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**page=2")
    assert names.first.inner_text() == "many-0100"
    page.get_by_role("link", name="Name", exact=True).click()
    page.wait_for_url("**sort=name")
    page.get_by_role("link", name="Name", exact=True).click()
    page.wait_for_url("**order=desc")
    assert names.first.inner_text() == "many-0999"
    assert page.get_by_role("columnheader", name="Name").get_attribute("aria-sort") == "descending"
    page.get_by_label("Class").select_option("FileStreamSource")
    page.wait_for_url("**class=FileStreamSource**")
    assert "500 of 1,000 connectors" in page.locator("caption").inner_text()
    with page.expect_download() as exported:
        page.get_by_role("link", name="Export this list as CSV").click()
    lines = exported.value.path().read_text().splitlines()
    assert (len(lines), lines[1].partition(",")[0]) == (501, "many-0999"), "all pages, in the order of the list"


def test_the_heading_and_the_actions_stay_in_sight(open_page: Callable[..., Page], crowd: PageWorker) -> None:
    page = open_page("", at=crowd.url)
    page.evaluate("scrollTo(0, 1500)")
    bar, heading = page.locator("#bulk").bounding_box(), page.locator("thead th").nth(1).bounding_box()
    assert bar is not None
    assert heading is not None
    assert bar["y"] == 0
    assert bar["y"] + bar["height"] - 2 <= heading["y"] < 60
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("many-0007")
    page.get_by_text("1 of 1,000 connectors").wait_for()


def test_a_row_is_a_card_on_a_phone(open_page: Callable[..., Page], crowd: PageWorker) -> None:
    page = open_page("", at=crowd.url, viewport={"width": 390, "height": 844})
    card = page.locator("tbody tr").first
    for part in (card, card.locator(".state"), card.get_by_text("FileStreamSink")):
        box = part.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390, "nothing is beside the screen"


def test_links_go_through_a_proxy(open_page: Callable[..., Page]) -> None:
    worker = PageWorker(page=PageSettings(base="/connect"))
    try:
        page = open_page("", at=worker.url)
        assert page.get_by_role("link", name="Plugins").get_attribute("href") == "/connect/ui/plugins"
        assert page.locator("link[rel=stylesheet]").get_attribute("href").startswith("/connect/ui/static/")
    finally:
        worker.close()
