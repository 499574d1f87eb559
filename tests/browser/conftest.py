"""A real browser, and a worker for its pages; one of each for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from equipment.workers.page_worker import PageWorker, demo_connectors

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0
DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 720}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium. Where there is none the tests are skipped."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium here: apt-get install --no-install-recommends chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        # Without a sandbox, because that needs rights that containers do not give.
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=SECONDS * 1000)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageWorker]:
    """A worker with connectors of every state. Tests leave these as they are."""
    worker = PageWorker()
    demo_connectors(worker.client, tmp_path_factory.mktemp("files"))
    yield worker
    worker.close()


class Watched:
    """The messages of pages on their console, and their requests to other origins."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.foreign: list[str] = []


@pytest.fixture
def watched() -> Watched:
    """The messages and foreign requests of the pages of this test."""
    return Watched()


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """The tab in which tests open their pages one after the other: a new one takes three times the CPU time."""
    context = browser.new_context(reduced_motion="reduce", viewport=DESKTOP)
    context.set_default_timeout(SECONDS * 1000)
    yield context.new_page()
    context.close()


@pytest.fixture
def open_page(browser: Browser, tab: Page, worker: PageWorker, watched: Watched) -> Iterator[Callable[..., Page]]:
    """Opens a page of the worker, ``open_page("connectors/x")``.

    It does so in the tab, as somebody who was never here before; with options of the browser's context in one of its
    own.
    """
    with ExitStack() as stack:

        def open_page(
            path: str = "",
            at: str = worker.url,
            color_scheme: Literal["light", "dark"] | None = None,
            viewport: ViewportSize = DESKTOP,
            **options: Any,
        ) -> Page:
            page = tab
            if options:
                context = browser.new_context(reduced_motion="reduce", **options)
                context.set_default_timeout(SECONDS * 1000)
                stack.callback(context.close)
                page = context.new_page()
            page.emulate_media(color_scheme=color_scheme or "null", reduced_motion="reduce")
            page.set_viewport_size(viewport)

            def note_message(message: ConsoleMessage) -> None:
                watched.said.append(message.text)

            def note_error(error: Error) -> None:
                watched.said.append(str(error))

            def note_request(sent: Request) -> None:
                if not sent.url.startswith(at):
                    watched.foreign.append(sent.url)

            page.on("console", note_message)
            page.on("pageerror", note_error)
            page.on("request", note_request)
            stack.callback(page.remove_listener, "console", note_message)
            stack.callback(page.remove_listener, "pageerror", note_error)
            stack.callback(page.remove_listener, "request", note_request)
            page.goto(f"{at}/ui/{path}".rstrip("/"))
            return page

        yield open_page
    tab.evaluate("if (location.origin !== 'null') localStorage.clear()")
    tab.context.clear_cookies()
    tab.goto("about:blank")


@pytest.fixture(scope="session")
def violations() -> Callable[..., list[tuple[str, str]]]:
    """Tells what keeps people from using a page, as axe-core finds it: by all of its rules, or by some."""
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(package.__file__).parent / "axe.min.js").read_text()

    def found(page: Page, *rules: str) -> list[tuple[str, str]]:
        if not page.evaluate("'axe' in window"):
            page.evaluate(axe)
        # What is well is not described: that takes axe-core several times as long.
        options = {"resultTypes": ["violations"], **({"runOnly": {"type": "rule", "values": rules}} if rules else {})}
        items = page.evaluate("async options => (await axe.run(options)).violations", options)
        return [(item["id"], str(item["nodes"][0]["target"])) for item in items]

    return found
