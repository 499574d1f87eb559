"""The hosts of a database as they are written, held to the worker's rules when a configuration is validated."""

from __future__ import annotations

import pytest

from connect.config import Config
from connect.errors import ConfigError
from connectors.jdbc import JdbcSinkConfig
from connectors.jdbc.source.config import JdbcSourceConfig

SOURCE = {"name": "c", "connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "t"}
SINK = {"name": "c", "connector.class": "JdbcSink", "topics": "t"}
RULES = {"http.denied.hosts": "10.0.0.0/8,bad.example,localhost"}
DENIES = "is not allowed: http.denied.hosts in the worker's file denies it."
CREDENTIALS = (
    "is not allowed: it is an address where clouds serve credentials. If that is what you want, add the address to "
    "http.allowed.hosts in the worker's file."
)


@pytest.fixture(params=["source", "sink"])
def kind(request: pytest.FixtureRequest) -> tuple[type[Config], dict[str, str]]:
    return (JdbcSourceConfig, SOURCE) if request.param == "source" else (JdbcSinkConfig, SINK)


def refusal(kind: tuple[type[Config], dict[str, str]], url: str, **more: str) -> str | None:
    config, props = kind
    try:
        config.parse(props | {"connection.url": url} | more)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("jdbc:postgresql://10.1.2.3/d", "10.1.2.3"),
        ("jdbc:postgresql://u:s3cret@BAD.example.:5432/d", "BAD.example."),
        ("jdbc:postgresql:d", "localhost"),
        ("jdbc:postgresql://good.example:1,10.1.2.3:2,other.example/d", "10.1.2.3"),
        ("jdbc:postgresql://[::ffff:10.0.0.1]/d", "::ffff:10.0.0.1 (::ffff:a00:1)"),
        ("postgresql+psycopg://good.example,bad.example/d", "bad.example"),
        ("jdbc:mysql://bad.example/d", "bad.example"),
        ("jdbc:mysql:///d", "localhost"),
        ("jdbc:mariadb:sequential://10.0.0.1:3306/d", "10.0.0.1"),
        ("mariadb+pymysql://10.0.0.1/d", "10.0.0.1"),
    ],
)
def test_a_host_that_the_worker_denies(kind: tuple[type[Config], dict[str, str]], url: str, shown: str) -> None:
    assert refusal(kind, url, **RULES) == f"connection.url: Connecting to {shown} {DENIES}"
    assert refusal(kind, url) is None


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "good.example,100.100.100.200"])
def test_where_clouds_serve_credentials_is_denied_by_default(
    kind: tuple[type[Config], dict[str, str]], host: str
) -> None:
    shown = host.rpartition(",")[2].strip("[]")
    assert refusal(kind, f"jdbc:postgresql://{host}/d") == f"connection.url: Connecting to {shown} {CREDENTIALS}"


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.3.4", "127.0.0.1", "localhost", "db.internal", "[fd12::1]"])
def test_private_databases_are_reached_by_default(kind: tuple[type[Config], dict[str, str]], host: str) -> None:
    assert refusal(kind, f"jdbc:postgresql://{host}/d") is None
    assert refusal(kind, f"jdbc:mariadb://{host}/d") is None


def test_only_what_the_worker_allows(kind: tuple[type[Config], dict[str, str]]) -> None:
    allowed = {"http.allowed.hosts": "*.example"}
    assert refusal(kind, "jdbc:postgresql://a.example,b.example/d", **allowed) is None
    assert refusal(kind, "jdbc:postgresql://a.example,other/d", **allowed) == (
        "connection.url: Connecting to other is not allowed: http.allowed.hosts in the worker's file does not list "
        "it. Add it there, or correct the URL."
    )


def test_a_file_has_no_host(kind: tuple[type[Config], dict[str, str]]) -> None:
    assert refusal(kind, "jdbc:sqlite:/a.db", **{"http.denied.hosts": "*", "http.allowed.hosts": "none"}) is None


@pytest.mark.parametrize(
    ("option", "value", "shown"),
    [
        ("host", "bad.example", "bad.example"),
        ("host", "good.example,10.0.0.1", "10.0.0.1"),
        ("hostaddr", "10.0.0.1", "10.0.0.1"),
        ("host", "/var/run/postgresql", "localhost"),
        ("host", "@abstract", "localhost"),
        ("host", "", "localhost"),
        ("unix_socket", "/run/mysqld.sock", "localhost"),
    ],
)
def test_a_host_beside_that_of_the_url_does_not_go_round_the_rules(
    kind: tuple[type[Config], dict[str, str]], option: str, value: str, shown: str
) -> None:
    scheme = "mariadb" if option == "unix_socket" else "postgresql"
    rules = {**RULES, "jdbc.allowed.options": "host,hostaddr,unix_socket"}
    expected = f"Connecting to {shown} {DENIES}"
    url = f"jdbc:{scheme}://good.example/d"
    assert refusal(kind, f"{url}?{option}={value}", **rules) == f"connection.url: {expected}"
    assert refusal(kind, url, **rules, **{f"connection.{option}": value}) == f"connection.{option}: {expected}"
    # Without being allowed, such options are refused whatever they say.
    refused = refusal(kind, f"{url}?{option}={value}")
    assert refused is not None
    assert f"the option {option} of" in refused
