"""A worker that goes while its page is open, and many connectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from equipment.workers.page_worker import PageWorker
from rest.ui.web_page import PageSettings

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_page_says_that_its_worker_is_gone_and_recovers(open_page: Callable[..., Page]) -> None:
    first = PageWorker()
    port = int(first.url.rpartition(":")[2])
    page = open_page("", at=first.url)
    page.get_by_text("No connectors yet.").wait_for()
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
        assert page.locator("tbody tr").count() == 500
    finally:
        worker.close()


def test_links_go_through_a_proxy(open_page: Callable[..., Page]) -> None:
    worker = PageWorker(page=PageSettings(base="/connect"))
    try:
        page = open_page("", at=worker.url)
        assert page.get_by_role("link", name="Plugins").get_attribute("href") == "/connect/ui/plugins"
        assert page.locator("link[rel=stylesheet]").get_attribute("href").startswith("/connect/ui/static/")
    finally:
        worker.close()
