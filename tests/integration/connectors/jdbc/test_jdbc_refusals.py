"""Servers of PostgreSQL that refuse a connection: for now, or for good, in whichever language they say so."""

from __future__ import annotations

import socket

import pytest

from connect.errors import ConnectError, RetriableError
from connectors.jdbc import JdbcSinkConfig
from equipment.fakes.refusing_postgresql import refusing
from equipment.servers.lease import Database

TEXTS = [
    ("ВАЖНО", "система баз данных запускается"),
    ("FATAL", "das Datenbanksystem startet"),
    ("ÖLÜMCÜL (FATAL)", "mevcut değil"),
    ("致命错误", "数据库系统启动中"),
    ("FATAL", "the database system is starting up"),
]


def connect(url: str, **props: str) -> None:
    config = {"name": "c", "topics": "t", "connection.attempts": "1", "connection.url": url, **props}
    made = JdbcSinkConfig.parse(config).database(lambda _: True)
    try:
        made.connection()
    finally:
        made.dispose()


def fails_for_good(url: str, **props: str) -> str:
    with pytest.raises(ConnectError) as failed:
        connect(url, **props)
    assert not isinstance(failed.value, RetriableError)
    return str(failed.value)


@pytest.mark.parametrize(("severity", "text"), TEXTS)
@pytest.mark.parametrize("state", ["57P03", "53300", "57P01", "08006", "58030"])
def test_a_server_that_refuses_for_now_in_its_language(state: str, severity: str, text: str) -> None:
    with refusing(state, severity, text) as port, pytest.raises(RetriableError, match=text):
        connect(f"jdbc:postgresql://127.0.0.1:{port}/shop")


@pytest.mark.parametrize(
    ("severity", "text"),
    [
        ("ВАЖНО", 'пользователь "ann" не прошёл проверку подлинности'),
        ("FATAL", "Passwort-Authentifizierung für Benutzer »ann« fehlgeschlagen"),
        # A name in it says nothing.
        ("FATAL", 'database "shutting down" does not exist'),
        ("FATAL", "57P03"),
    ],
)
@pytest.mark.parametrize("state", ["28P01", "28000", "3D000", "42501", "42704", "0A000"])
def test_a_server_that_refuses_for_good_in_its_language(state: str, severity: str, text: str) -> None:
    with refusing(state, severity, text) as port:
        assert text in fails_for_good(f"jdbc:postgresql://127.0.0.1:{port}/shop")


def test_a_pooler_that_says_all_by_one_state() -> None:
    with refusing("08P01", text="password authentication failed") as port:
        fails_for_good(f"jdbc:postgresql://127.0.0.1:{port}/shop")
    with refusing("08P01", text="sorry, too many clients already") as port, pytest.raises(RetriableError):
        connect(f"jdbc:postgresql://127.0.0.1:{port}/shop")


def test_a_server_that_is_gone_when_it_is_asked_why() -> None:
    with refusing("28P01", text="startet", answers=1) as port, pytest.raises(RetriableError, match="startet"):
        connect(f"jdbc:postgresql://127.0.0.1:{port}/shop?sslmode=disable")


def test_of_several_servers_one_may_let_it_in_later() -> None:
    with refusing("28P01") as wrong, refusing("57P03") as starting:
        for ports in ((wrong, starting), (starting, wrong)):
            with pytest.raises(RetriableError):
                connect("jdbc:postgresql://{}/shop".format(",".join(f"127.0.0.1:{port}" for port in ports)))
        # A server that is down says nothing against what another one has refused.
        fails_for_good(f"jdbc:postgresql://127.0.0.1:1,localhost:{wrong}/shop")


def test_a_server_that_is_not_reached_or_hangs_up_is_tried_again() -> None:
    with pytest.raises(RetriableError):
        connect("jdbc:postgresql://127.0.0.1:1/shop")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RetriableError):
        connect(f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/shop?connect_timeout=2")


@pytest.mark.parametrize("options", ["sslmode=require", "sslmode=verify-full&sslrootcert=system"])
def test_a_server_without_tls_is_not_tried_again(postgresql: Database, options: str) -> None:
    assert "does not support SSL" in fails_for_good(f"{postgresql.jdbc_url}?{options}")


def test_what_a_real_server_refuses(postgresql: Database) -> None:
    props = dict(postgresql.props)
    url = props.pop("connection.url")
    fails_for_good(url, **props | {"connection.password": "wr0ng"})
    fails_for_good(url, **props | {"connection.user": "starting up"})
    fails_for_good(f"{url}_starting up".replace(" ", "%20"), **props)
    told = fails_for_good(url, **{"connection.user": props["connection.user"]})
    assert "no password supplied" in told
    role = f"{postgresql.name}_role"
    postgresql.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
    try:
        with pytest.raises(RetriableError, match="too many connections for role"):
            connect(url, **{"connection.user": role, "connection.password": "x"})
        postgresql.execute(f"ALTER ROLE {role} NOLOGIN")
        assert "not permitted to log in" in fails_for_good(url, **{"connection.user": role, "connection.password": "x"})
    finally:
        postgresql.execute(f"DROP ROLE {role}")
