"""A real browser, and a worker for its pages; one of each for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from equipment.workers.page_worker import PageWorker, demo_connectors

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0


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
    """What a page has said on its console, and asked of other origins."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.foreign: list[str] = []


@pytest.fixture
def watched() -> Watched:
    """What the pages of this test have said."""
    return Watched()


@pytest.fixture
def open_page(browser: Browser, worker: PageWorker, watched: Watched) -> Iterator[Callable[..., Page]]:
    """Opens a page of the worker, ``open_page("connectors/x")``, with options of the browser's context."""
    contexts = []

    def open_page(path: str = "", at: str = worker.url, **options: Any) -> Page:
        context = browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: watched.said.append(message.text))
        page.on("pageerror", lambda error: watched.said.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(at) or watched.foreign.append(sent.url))
        page.goto(f"{at}/ui/{path}".rstrip("/"))
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def violations() -> Callable[[Page], list[tuple[str, str]]]:
    """Tells what keeps people from using a page, as axe-core finds it."""
    package = pytest.importorskip("axe_playwright_python")
    axe = (Path(package.__file__).parent / "axe.min.js").read_text()

    def found(page: Page) -> list[tuple[str, str]]:
        page.evaluate(axe)
        items = page.evaluate("axe.run()")["violations"]
        return [(item["id"], str(item["nodes"][0]["target"])) for item in items]

    return found
