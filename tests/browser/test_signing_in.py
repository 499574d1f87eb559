"""Signing in and out on the page, and what a reader without rights sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from equipment.fakes.guarded_api import guards_of
from equipment.workers.page_worker import PageWorker
from rest.access.sign_in import SignIn
from worker.security.permissions import Roles, parse_roles
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROLES = """
[roles.looks]
users = ["looks"]
[[roles.looks.allow]]
rights = ["view"]
"""


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[PageWorker]:
    """A worker where one user may look, and do nothing."""
    (tmp_path / "users").write_text("looks: pw\n")
    (tmp_path / "roles.toml").write_text(ROLES)
    roles: WatchedFile[Roles] = WatchedFile(tmp_path / "roles.toml", "file of roles", parse_roles, Roles())
    sign_in = SignIn(users=Users(tmp_path / "users"))
    sink = {"connector.class": "FileStreamSink", "file": "/tmp/o", "topics": "t"}
    worker = PageWorker(stopped={"seen": sink}, guards=lambda herder: guards_of(herder, sign_in, roles))
    yield worker
    worker.close()


def test_people_sign_in_and_out(open_page: Callable[..., Page], guarded: PageWorker) -> None:
    page = open_page("connectors/seen", at=guarded.url)
    page.get_by_role("heading", name="Sign in", exact=True).wait_for()
    assert guarded.url.removeprefix("http://") not in page.locator("footer").inner_text()
    page.get_by_label("User").fill("looks")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("alert").get_by_text("is wrong").wait_for()
    page.get_by_label("User").fill("looks")
    page.get_by_label("Password").fill("pw")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_text("1 connector, those").wait_for()
    page.goto(f"{guarded.url}/ui/connectors/seen")
    delete = page.get_by_role("button", name="Delete")
    assert (delete.is_disabled(), delete.get_attribute("title")) == (True, "You lack the right delete")
    assert page.get_by_text("You lack the right operate.").is_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in", exact=True).wait_for()
