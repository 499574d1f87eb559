"""Every page, light, dark and narrow: usable by all, silent, and with nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from equipment.workers.page_worker import SECRET

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Watched

    Violations = Callable[..., list[tuple[str, str]]]

OF_COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that other colours can break."""

BESIDE_THE_SCREEN = """() => [...document.querySelectorAll(".scroll:has(> table.list)")]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.getAttribute("aria-label"))"""

SCRIPT = "connectors/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
PAGES = {
    "": "Connectors",
    "?show=failed": "Connectors",
    "connectors/orders-sink": "orders-sink",
    SCRIPT: "<script>alert(1)</script>",
    "connectors/a%2Fb": "a/b",
    "connectors/orders-sink/offsets": "orders-sink",
    "connectors/a%2Fb/offsets": "a/b",
    "connectors/orders-sink/dlq": "orders-sink",
    "connectors/orders-sink/dlq/0:1": "orders-sink",
    "connectors/lines/logs": "lines",
    "connectors/lines/loads": "lines",
    "connectors/lines/measurements": "lines",
    "connectors/customers/config": "customers",
    "connectors/customers/versions": "customers",
    "connectors/customers/edit": "customers",
    "connectors/orders-sink/preview": "orders-sink",
    "sign-in": "Sign in",
    "new": "New connector",
    "new/FileStreamSink": "New FileStreamSinkConnector",
    "topology": "Topology",
    "plugins": "Plugins",
    "plugins/connectors.jdbc.JdbcSinkConnector/config": "JdbcSinkConnector",
    "cluster": "Cluster",
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_usable_and_silent(
    path: str, open_page: Callable[..., Page], violations: Violations, watched: Watched
) -> None:
    page = open_page(path, color_scheme="light")
    assert page.locator("h1").inner_text() == PAGES[path]
    if page.locator("#fields").count():
        page.locator(".field").first.wait_for()
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page, *OF_COLOURS) == [], "in dark colours"
    page.set_viewport_size({"width": 320, "height": 640})
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, "nothing makes people scroll sideways"
    assert page.evaluate(BESIDE_THE_SCREEN) == [], "nor does a table whose rows are cards there"
    assert SECRET not in page.content()
    assert page.title().endswith(" · Sluice")
    assert watched.said == []
    assert watched.foreign == []


@pytest.mark.parametrize("path", ["", SCRIPT, "connectors/customers/config"])
def test_a_page_reads_without_scripts(path: str, open_page: Callable[..., Page]) -> None:
    page = open_page(path, java_script_enabled=False)
    assert page.locator("h1").inner_text() == PAGES[path]
    assert "Without JavaScript" in page.locator("noscript").first.inner_text()
    assert not any(button.is_visible() for button in page.locator("button:not([type=submit])").all())


def test_there_is_no_such_page(open_page: Callable[..., Page]) -> None:
    page = open_page("connectors/nobody")
    assert "Connector nobody not found" in page.locator(".refusal").inner_text()


def test_the_choice_of_colours_stays(open_page: Callable[..., Page]) -> None:
    page = open_page("cluster", color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Colours").select_option("dark")
    page.reload()
    assert page.get_by_label("Colours").input_value() == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
