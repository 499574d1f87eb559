"""Signing in: basic authentication as Kafka Connect answers it, tokens, certificates, sessions."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import argon2
import bcrypt
import pytest
from flask.testing import FlaskClient

from equipment.fakes.guarded_api import basic, guards_of, small_herder
from equipment.fakes.herding import Clock
from rest.access.access import Access
from rest.access.guards import Guards
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from rest.app import create_admin_app, create_app
from rest.http.headers import AnswerHeaders
from rest.server.tls import CLIENT_CERTIFICATE
from rest.ui.web_page import PageSettings
from worker.herder.herder import Herder
from worker.security.api_tokens import ApiTokens, TokenFile
from worker.security.attempts import Attempts
from worker.security.certificate_names import NameRules
from worker.security.principals import Principal
from worker.security.sessions import Sessions
from worker.security.users import Users

REFUSED = "User cannot access the resource."


@pytest.fixture(scope="module")
def herder() -> Iterator[Herder]:
    with small_herder() as herder:
        yield herder


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.properties"
    file.write_text("alice: wonder:land\nempty=\nüser = pässword\n", encoding="utf-8")
    return file


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(herder: Herder, users: Path, tmp_path: Path, clock: Clock) -> FlaskClient:
    sign_in = SignIn(
        users=Users(users, clock),
        tokens=ApiTokens(tmp_path / "tokens.json"),
        certificate_names=NameRules.parse("RULE:^CN=([^,]*),.*$/$1/L,DEFAULT"),
        attempts=Attempts(clock),
    )
    return create_app(herder, "cluster", guards=guards_of(herder, sign_in)).test_client()


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic",
        "Basic " + encoded(b"alice:wrong"),
        "Basic " + encoded(b"nobody:wonder:land"),
        "Basic " + encoded(b"alice"),
        "Basic " + encoded(b":wonder:land"),
        "Basic not base64!",
        "Basic " + encoded(b"\xff\xfe:x"),
        "Bearer x",
        "Digest x",
    ],
)
@pytest.mark.parametrize("path", ["/", "/health", "/connectors", "/connector-plugins", "/connectors/a/tasks"])
def test_nobody_is_let_in_without_the_right_password(client: FlaskClient, header: str | None, path: str) -> None:
    answer = client.get(path, headers={} if header is None else {"Authorization": header})
    assert (answer.status_code, answer.get_data(as_text=True)) == (401, REFUSED)
    assert answer.headers["Content-Type"] == "application/json"
    assert not answer.headers.get("WWW-Authenticate", "").startswith("Basic")


@pytest.mark.parametrize(
    "header",
    [
        "Basic " + encoded(b"alice:wonder:land"),
        "bAsIc " + encoded(b"alice:wonder:land"),
        "Basic " + encoded(b"empty:"),
        "Basic " + encoded("üser:pässword".encode()),
    ],
)
def test_a_user_is_let_in(client: FlaskClient, header: str) -> None:
    assert client.get("/connectors", headers={"Authorization": header}).get_json() == []


def test_what_does_not_exist_is_said_before(client: FlaskClient) -> None:
    assert client.get("/nothing").status_code == 404
    assert client.delete("/connectors").status_code == 405


def test_other_methods_are_refused_alike(client: FlaskClient) -> None:
    assert client.head("/connectors").status_code == 401
    assert client.options("/connectors").headers["Content-Type"] == "text/plain"
    assert client.options("/connectors").status_code == 401
    assert client.delete("/connectors/a").status_code == 401


def test_users_change_with_their_file(client: FlaskClient, users: Path) -> None:
    users.write_text("bob: builder-of-houses\n")
    assert client.get("/", headers=basic("alice", "wonder:land")).status_code == 401
    assert client.get("/", headers=basic("bob", "builder-of-houses")).status_code == 200


def test_an_empty_or_missing_file_lets_nobody_in(client: FlaskClient, users: Path) -> None:
    users.write_text("")
    assert client.get("/").status_code == 401
    assert client.get("/", headers=basic("", "")).status_code == 401
    users.unlink()
    assert client.get("/", headers=basic("alice", "wonder:land")).status_code == 401


@pytest.mark.parametrize(
    "stored",
    [
        "$2y$04$abcdefghijklmnopqrstuuSu1hHP5vVWBSMjTWu/BMIBaRnJGDL.W",
        "$argon2id$v=19$m=8,t=1,p=1$broken",
        "$argon2id$nothing",
        "$2y$nothing",
    ],
)
def test_a_broken_hash_lets_nobody_in(client: FlaskClient, users: Path, stored: str) -> None:
    users.write_text(f"carol: {stored}\nalice: pw\n")
    assert client.get("/", headers=basic("carol", "x")).status_code == 401
    assert client.get("/", headers=basic("carol", stored)).status_code == 401
    assert client.get("/", headers=basic("alice", "pw")).status_code == 200


def test_passwords_may_be_hashed(client: FlaskClient, users: Path) -> None:
    cheap = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("tree-house")
    long = "p" * 80
    crypted = bcrypt.hashpw(long.encode()[:72], bcrypt.gensalt(4)).decode()
    users.write_text(f"carol: {cheap}\ndave={crypted}\n")
    assert client.get("/", headers=basic("carol", "tree-house")).status_code == 200
    assert client.get("/", headers=basic("dave", long)).status_code == 200
    assert client.get("/", headers=basic("carol", "tree")).status_code == 401
    assert client.get("/", headers=basic("nobody", "tree-house")).status_code == 401


def test_whoever_fails_too_often_waits(client: FlaskClient, clock: Clock) -> None:
    right = basic("empty", "")
    for _ in range(5):
        assert client.get("/", headers=basic("alice", "guess")).status_code == 401
    waits = client.get("/", headers=basic("alice", "wonder:land"))
    assert (waits.status_code, waits.headers["Retry-After"]) == (429, "10")
    assert client.get("/", headers=right).status_code == 200, "others are let in"
    clock.now += 11
    assert client.get("/", headers=basic("alice", "wonder:land")).status_code == 200


def test_a_password_that_was_right_a_moment_ago_is_not_held_up(client: FlaskClient) -> None:
    assert client.get("/", headers=basic("alice", "wonder:land")).status_code == 200
    for _ in range(6):
        client.get("/", headers=basic("alice", "guess"))
    assert client.get("/", headers=basic("alice", "wonder:land")).status_code == 200


def test_the_admin_listener_is_guarded_too(herder: Herder, users: Path) -> None:
    client = create_admin_app(herder, guards=guards_of(herder, SignIn(users=Users(users)))).test_client()
    assert client.get("/admin/loggers").status_code == 401
    assert client.get("/admin/loggers", headers=basic("empty", "")).status_code == 200


def test_probes_may_be_let_in(herder: Herder, users: Path) -> None:
    guards = guards_of(herder, SignIn(users=Users(users)), health_open=True)
    client = create_app(herder, "cluster", guards=guards).test_client()
    assert client.get("/health").status_code == 200
    assert client.get("/").status_code == 401


def test_tokens_are_taken_until_they_are_revoked(client: FlaskClient, tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    token = file.create("deployer", ["ci"], None)
    expired = file.create("deployer", ["ci"], -1)
    header = {"Authorization": f"Bearer {token}"}
    assert client.get("/whoami", headers=header).get_json()["principal"] == {
        "name": "deployer",
        "mechanism": "token",
        "groups": ["ci"],
    }
    wrong = client.get("/", headers={"Authorization": f"Bearer {token[:-1]}{'A' if token[-1] != 'A' else 'B'}"})
    assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
    assert client.get("/", headers={"Authorization": f"Bearer {expired}"}).status_code == 401
    assert token.split("_", 2)[2] not in (tmp_path / "tokens.json").read_text()
    file.revoke(file.tokens()[0].id)
    assert client.get("/", headers=header).status_code == 401


def test_a_certificate_signs_in(client: FlaskClient) -> None:
    subject = ((("countryName", "NL"),), (("organizationName", "Acme, Inc."),), (("commonName", "Ops"),))
    environ = {CLIENT_CERTIFICATE: {"subject": subject}}
    who = client.get("/whoami", environ_overrides=environ).get_json()
    assert who["principal"] == {"name": "ops", "mechanism": "certificate", "groups": []}
    alone = client.get("/whoami", environ_overrides={CLIENT_CERTIFICATE: {"subject": subject[1:2]}}).get_json()
    assert alone["principal"]["name"] == "O=Acme\\, Inc."
    assert client.get("/", environ_overrides={CLIENT_CERTIFICATE: {}}).status_code == 401
    assert client.get("/", headers={"sluice.client_certificate": "CN=Ops,"}).status_code == 401


def test_a_page_signs_in_by_a_form_and_out_again(client: FlaskClient, users: Path) -> None:
    given = {"user": "alice", "password": "wonder:land", "next": "/ui/connectors/a?x=1"}
    answer = client.post("/session", data=given, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/connectors/a?x=1")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("sluice-session=")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
    who = client.get("/whoami").get_json()
    assert (who["principal"]["name"], who["session"]) == ("alice", True)
    assert client.delete("/session").status_code == 204
    assert client.get("/whoami").status_code == 401
    again = client.post("/session", json={"user": "alice", "password": "wonder:land"})
    assert again.get_json()["principal"] == {"name": "alice", "mechanism": "basic", "groups": []}
    users.write_text("alice: another\n")
    assert client.get("/whoami").status_code == 401, "her password has changed"


def test_over_https_the_cookie_is_bound_to_its_host(client: FlaskClient) -> None:
    answer = client.post(
        "/session", json={"user": "empty", "password": ""}, environ_overrides={"wsgi.url_scheme": "https"}
    )
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-sluice-session=")
    assert "; Secure" in cookie


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/ui\\..", "/uix", "/ui/\r\nx: y", ""])
def test_a_form_never_leads_to_another_site(client: FlaskClient, wanted: str) -> None:
    answer = client.post("/session", data={"user": "empty", "password": "", "next": wanted})
    assert answer.headers["Location"] == "/ui"


def test_a_wrong_password_gives_no_session(client: FlaskClient) -> None:
    form = client.post("/session", data={"user": "alice", "password": "x"})
    assert (form.status_code, form.headers["Location"]) == (303, "/ui/sign-in?failed=wrong")
    answer = client.post("/session", json={"user": "alice", "password": "x"})
    assert answer.get_json() == {"error_code": 401, "message": "The user or the password is wrong."}
    assert client.post("/session", json={"user": "alice"}).status_code == 400
    assert client.post("/session", json={"user": 1, "password": "x"}).status_code == 400
    assert "Set-Cookie" not in answer.headers


def test_a_session_that_nobody_began_does_not_exist(client: FlaskClient) -> None:
    client.set_cookie("sluice-session", "x" * 43)
    assert client.get("/whoami").status_code == 401


def test_a_page_of_another_origin_cannot_sign_anybody_in(client: FlaskClient) -> None:
    given = {"user": "alice", "password": "wonder:land"}
    answer = client.post("/session", data=given, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403


def test_answers_are_kept_by_nobody(client: FlaskClient) -> None:
    answer = client.get("/", headers=basic("empty", ""))
    assert (answer.headers["Cache-Control"], answer.headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


def test_where_nobody_signs_in_everything_is_allowed(herder: Herder) -> None:
    client = create_app(herder, "cluster").test_client()
    who = client.get("/whoami").get_json()
    assert (who["principal"], who["rights"]) == (None, ["metrics", "cluster", "admin"])
    assert client.post("/session", json={"user": "a", "password": "b"}).status_code == 404
    assert "Cache-Control" not in client.get("/").headers


def test_a_session_counts_for_no_page_of_another_origin(herder: Herder, users: Path) -> None:
    guards = guards_of(herder, SignIn(users=Users(users)))
    client = create_app(herder, "cluster", guards=guards, headers=AnswerHeaders.of("*", "", "")).test_client()
    client.post("/session", json={"user": "alice", "password": "wonder:land"})
    page = {"Origin": "http://localhost:9999", "Sec-Fetch-Site": "same-site"}
    assert client.post("/connectors/a/restart", headers=page).status_code == 403
    client.delete("/session")
    signed = client.post("/connectors/a/restart", headers={**page, **basic("alice", "wonder:land")})
    assert signed.status_code == 404, "a program may send credentials of its own"


def test_a_session_ends() -> None:
    clock, holds = Clock(), [True]
    sessions = Sessions(clock)
    secret = sessions.begin(Principal("alice", "basic"), lambda: holds[0])
    for _ in range(25):
        clock.now += 1799
        used = sessions.principal(secret)
    assert used is None, "twelve hours after it began"
    again = sessions.begin(Principal("alice", "basic"), lambda: holds[0])
    clock.now += 1799
    assert sessions.principal(again) == Principal("alice", "basic")
    clock.now += 1800
    assert sessions.principal(again) is None, "half an hour after it was used"
    third = sessions.begin(Principal("alice", "basic"), lambda: holds[0])
    holds[0] = False
    assert sessions.principal(third) is None


def test_a_page_below_a_path_is_sent_to_its_own_sign_in(herder: Herder, tmp_path: Path) -> None:
    (tmp_path / "below").write_text("ann: pw\n")
    access = Access(SignIn(users=Users(tmp_path / "below")), None, StoredConfigs(herder), page="/connect/ui")
    site = PageSettings(base="/connect")
    client = create_app(herder, "cluster", guards=Guards(access=access), page=site).test_client()
    away = client.get("/ui/cluster?x=1")
    assert (away.status_code, away.headers["Location"]) == (
        303,
        "/connect/ui/sign-in?next=%2Fconnect%2Fui%2Fcluster%3Fx%3D1",
    )
    wrong = client.post("/session", data={"user": "ann", "password": "no"})
    assert wrong.headers["Location"] == "/connect/ui/sign-in?failed=wrong"
    form = {"user": "ann", "password": "pw", "next": "/connect/ui/cluster?x=1"}
    assert client.post("/session", data=form).headers["Location"] == "/connect/ui/cluster?x=1"
    assert client.post("/session", data={**form, "next": "/ui"}).headers["Location"] == "/connect/ui"
