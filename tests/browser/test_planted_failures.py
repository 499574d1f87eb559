"""Six planted failures, whose causes an operator reads from the page alone, or from ``sluice status`` alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from equipment.waiting import wait_until
from equipment.workers.planted_failures import BROKER, CAUSES, PASSWORD, PlantedFailures

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
MILLISECONDS = 120_000


@pytest.fixture(scope="module")
def planted(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlantedFailures]:
    with PlantedFailures.planted(tmp_path_factory.mktemp("planted"), broker_jars) as planted:
        yield planted


def words_on_a_terminal(*arguments: str) -> str:
    """What a command shows on a terminal of 80 columns, with single spaces between the words."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "worker.cli.main", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65_536):
                shown += part
        except OSError:  # how a terminal ends on Linux
            pass
        finally:
            os.close(ours)
    return " ".join(shown.decode().split())


def test_the_page_tells_the_cause_of_each(open_page: Callable[..., Page], planted: PlantedFailures) -> None:
    url = planted.worker.url().rstrip("/")
    page = open_page("", at=url)
    for name, cause in CAUSES.items():
        page.goto(f"{url}/ui/connectors/{name}")
        why = page.locator(".why")
        why.filter(has_text=cause).wait_for(timeout=MILLISECONDS)
        box = why.first.bounding_box()
        assert box is not None
        assert box["y"] < 300, f"{name}: without scrolling"
        assert PASSWORD not in page.content()
    page.goto(f"{url}/ui")
    for name, cause in CAUSES.items():
        assert cause in str(page.locator(f'tr[data-key="{name}"] .reason').get_attribute("title"))


def test_the_command_tells_them_too(planted: PlantedFailures) -> None:
    url = planted.worker.url()

    def told_by(name: str) -> bool:
        return CAUSES[name] in words_on_a_terminal("status", name, "--url", url)

    for name in CAUSES:
        wait_until(f"the status of {name} tells its cause", lambda name=name: told_by(name), 120)
    shown = words_on_a_terminal("status", "--url", url)
    for name, cause in CAUSES.items():
        assert name in shown
        assert cause in shown
    assert PASSWORD not in shown


def test_a_broker_that_is_gone_is_told_on_top(open_page: Callable[..., Page], planted: PlantedFailures) -> None:
    planted.broker.kill()
    page = open_page("", at=planted.worker.url().rstrip("/"))
    told = page.get_by_role("alert").get_by_text(BROKER)
    told.wait_for(timeout=MILLISECONDS)
    assert BROKER in words_on_a_terminal("status", "--url", planted.worker.url())
