"""The pages as they are sent: their addresses, headers and errors, and what each reader may see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest
from flask.testing import FlaskClient

from equipment.fakes.guarded_api import PLUGIN, basic, guards_of, small_herder
from rest.access.sign_in import SignIn
from rest.app import create_app
from rest.http.headers import AnswerHeaders
from rest.ui.web_page import PageSettings
from worker.herder.herder import Herder
from worker.security.permissions import Roles, parse_roles
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

SECRET = "4711-of-the-page"
ROLES = """
[roles.looks]
users = ["looks"]
[[roles.looks.allow]]
connectors = ["seen"]
rights = ["view"]
"""


@pytest.fixture(scope="module")
def herder() -> Iterator[Herder]:
    with small_herder() as herder:
        client = create_app(herder, "cluster").test_client()
        for name in ("seen", "unseen", "<b>/x"):
            config = {"connector.class": PLUGIN, "pin": SECRET, "topic": "orders", "odd.<i>Key": "1"}
            client.post("/connectors", json={"name": name, "config": config, "initial_state": "STOPPED"})
        yield herder


@pytest.fixture
def client(herder: Herder) -> FlaskClient:
    return create_app(herder, "cluster", worker_id="host:8083").test_client()


@pytest.fixture
def guarded(herder: Herder, tmp_path: Path) -> FlaskClient:
    (tmp_path / "users").write_text("looks: pw\n")
    (tmp_path / "roles.toml").write_text(ROLES)
    roles: WatchedFile[Roles] = WatchedFile(tmp_path / "roles.toml", "file of roles", parse_roles, Roles())
    guards = guards_of(herder, SignIn(users=Users(tmp_path / "users")), roles)
    return create_app(herder, "cluster", guards=guards).test_client()


def test_a_page_comes_with_the_headers_that_keep_it_to_itself(client: FlaskClient) -> None:
    answer = client.get("/ui", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert not re.search(r"""(?:src|href)="(?![/#])""", answer.text), "every address begins at this origin"
    assert "style=" not in answer.text
    assert " onclick" not in answer.text


def test_names_are_text(client: FlaskClient) -> None:
    page = client.get("/ui").text
    assert "&lt;b&gt;/x" in page
    assert "<b>/x" not in page
    assert '/ui/connectors/%3Cb%3E%2Fx"' in page
    assert "&lt;b&gt;/x" in client.get("/ui/connectors/%3Cb%3E%2Fx").text


def test_a_page_that_is_the_same_is_not_sent_again(client: FlaskClient) -> None:
    tag = client.get("/ui/plugins").headers["ETag"]
    again = client.get("/ui/plugins", headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")


def test_files_stay_for_ever_at_an_address_of_their_own(client: FlaskClient) -> None:
    address = re.findall(r'href="([^"]+page\.css)"', client.get("/ui").text)[0]
    found = client.get(address)
    assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert found.headers["Content-Type"] == "text/css; charset=utf-8"
    older = client.get("/ui/static/000000000000/page.js")
    assert older.headers["Cache-Control"] == "no-cache"
    assert client.get("/ui/static/0/secrets.py").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/ui/connectors/nobody", 404, "Connector nobody not found"),
        ("/ui/nothing/there", 404, "There is no such page."),
        ("/ui/plugins/none/config", 404, "Unknown plugin none."),
        ("/ui/new/none", 404, "There is no connector class none."),
        ("/ui/connectors/seen/dlq?after=x", 400, "after is &#39;x&#39;"),
    ],
)
def test_an_error_is_a_page(client: FlaskClient, path: str, status: int, text: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert text in answer.text


def test_long_names_may_break_between_their_parts(client: FlaskClient) -> None:
    page = client.get("/ui/connectors/seen/config").text
    assert "connector.<wbr>class</th>" in page
    assert "odd.&lt;i&gt;Key</th>" in page, "what somebody has named is no markup"


@pytest.mark.parametrize(
    "path", ["", "/connectors/seen", "/connectors/seen/config", "/connectors/seen/edit", "/cluster"]
)
def test_no_page_shows_a_secret(client: FlaskClient, path: str) -> None:
    answer = client.get(f"/ui{path}")
    assert answer.status_code == 200
    assert SECRET not in answer.text


def test_browsers_are_sent_to_the_page_and_programs_are_not(client: FlaskClient) -> None:
    browser = client.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (browser.status_code, browser.headers["Location"]) == (303, "/ui")
    for accepted in ("application/json", "*/*", ""):
        assert client.get("/", headers={"Accept": accepted}).get_json()["kafka_cluster_id"] == "cluster"


def test_the_page_can_be_switched_off_and_be_below_a_path(herder: Herder) -> None:
    off = create_app(herder, "cluster", page=PageSettings(enabled=False)).test_client()
    assert off.get("/ui").status_code == 404
    assert off.get("/", headers={"Accept": "text/html,*/*;q=0.8"}).get_json()["kafka_cluster_id"] == "cluster"
    below = create_app(herder, "cluster", page=PageSettings(base="/connect")).test_client()
    links = set(re.findall(r'(?:src|href|action)="([^"#]+)"', below.get("/ui").text))
    assert links
    assert all(link.startswith("/connect/") for link in links)


def test_headers_of_the_operator_are_on_pages_too(herder: Herder) -> None:
    headers = AnswerHeaders.of("", "", "set X-Frame-Options: SAMEORIGIN")
    client = create_app(herder, "cluster", headers=headers).test_client()
    assert client.get("/ui").headers["X-Frame-Options"] == "SAMEORIGIN"


def test_who_has_not_signed_in_is_asked_to(guarded: FlaskClient) -> None:
    answer = guarded.get("/ui/connectors/seen/logs")
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        "/ui/sign-in?next=%2Fui%2Fconnectors%2Fseen%2Flogs",
    )
    asked = guarded.get(answer.headers["Location"])
    assert 'value="/ui/connectors/seen/logs"' in asked.text
    assert "unseen" not in asked.text
    form = {"user": "looks", "password": "pw", "next": "/ui/connectors/seen/logs"}
    assert guarded.post("/session", data=form).headers["Location"] == "/ui/connectors/seen/logs"
    assert "Sign out" in guarded.get("/ui").text
    wrong = guarded.post("/session", data={**form, "password": "no"})
    assert "is wrong" in guarded.get(wrong.headers["Location"]).text


def test_a_reader_sees_what_it_may_see(guarded: FlaskClient) -> None:
    looks = basic("looks", "pw")
    overview = guarded.get("/ui", headers=looks).text
    assert ">seen</a>" in overview
    assert "unseen" not in overview
    assert 'data-lacks="operate delete"' in overview
    page = guarded.get("/ui/connectors/seen", headers=looks).text
    assert re.search(r'data-act="delete"[^>]*disabled title="You lack the right delete"', page)
    assert "/ui/connectors/seen/config" not in page, "there are no links to what is refused"


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("connectors/unseen", "view"),
        ("connectors/unseen/offsets", "view"),
        ("connectors/unseen/logs", "view"),
        ("connectors/unseen/loads", "view"),
        ("connectors/unseen/measurements", "view"),
        ("connectors/seen/config", "configs"),
        ("connectors/seen/edit", "edit"),
        ("connectors/seen/dlq", "dead-letters"),
        ("connectors/seen/dlq/0:1", "dead-letters"),
        ("connectors/seen/preview", "preview"),
        ("new", "edit"),
        (f"new/{PLUGIN}", "edit"),
        ("cluster", "cluster"),
    ],
)
def test_a_page_needs_the_right_to_what_it_shows(guarded: FlaskClient, path: str, right: str) -> None:
    answer = guarded.get(f"/ui/{path}", headers=basic("looks", "pw"))
    assert answer.status_code == 403
    assert f"looks lacks the right {right}" in answer.text
    assert "Traceback" not in answer.text


def test_every_page_and_file_is_in_the_package() -> None:
    folder = Path(create_app.__code__.co_filename).parent / "ui"
    named = {file.name for file in folder.rglob("*") if file.suffix in (".html", ".css", ".js", ".svg")}
    imported = {
        name
        for file in (folder / "static").glob("*.js")
        for name in re.findall(r'from "\./([\w-]+\.js)"', file.read_text())
    }
    assert imported <= named
    linked = {
        name
        for file in (folder / "templates").glob("*.html")
        for name in re.findall(r'\{\{ static \}\}/([\w.-]+)"', file.read_text())
    }
    assert linked <= named


class WithoutAWorker:
    """The leader of a cluster whose other worker is gone."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self.cluster = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._herder, name)

    def view(self) -> Any:
        """Answer as the leader does."""
        view = {**self._herder.cluster.view().result(10), "mode": "distributed", "complete": True}
        (worker,) = view["workers"]
        leader = {**worker, "worker_id": "one:8083", "url": "http://one:8083/", "leads": True}
        gone = {**worker, "worker_id": "two:8083", "url": None, "leads": False}
        answer: Future[Any] = Future()
        answer.set_result({**view, "workers": [leader, gone]})
        return answer


def test_a_worker_that_is_gone_is_no_follower(herder: Herder) -> None:
    client = create_app(cast("Herder", WithoutAWorker(herder)), "cluster").test_client()
    page = client.get("/ui/cluster").text
    row = page.partition('data-key="two:8083"')[2].partition("</tr>")[0]
    assert "Gone" in row
    assert "follower" not in row
    assert "Drain" not in row
    assert page.count(">Drain<") == 1
