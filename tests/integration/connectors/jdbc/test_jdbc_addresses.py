"""The hosts of a database, held to the worker's rules by their addresses when a connection is made."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostDeniedError
from connectors.jdbc import JdbcSinkConfig
from equipment.servers.lease import Database

LOOPBACK = "127.0.0.0/8,::1"


def connected(database: Database, hosts: Callable[[str], str] = lambda place: place, **props: str) -> object:
    """Connect, and return the first value of a query; ``hosts`` writes the hosts of the URL in another way."""
    place = f"127.0.0.1:{database.port}"
    url = database.jdbc_url.replace(place, hosts(place))
    config = {"name": "c", "topics": "t", "connection.attempts": "1", **database.props, "connection.url": url, **props}
    made = JdbcSinkConfig.parse(config).database(lambda _: True)
    try:
        return made.connection().exec_driver_sql("SELECT 41 + 1").scalar()
    finally:
        made.dispose()


def by_name(place: str) -> str:
    return place.replace("127.0.0.1", "localhost")


def test_a_name_is_denied_for_its_addresses(database: Database) -> None:
    assert connected(database, by_name) == 42
    first = socket.getaddrinfo("localhost", database.port, type=socket.SOCK_STREAM)[0][4][0]
    with pytest.raises(HostDeniedError) as refused:
        connected(database, by_name, **{"http.denied.hosts": LOOPBACK})
    assert str(refused.value) == (
        f"connection.url: Connecting to localhost ({first}) is not allowed: http.denied.hosts in the worker's file "
        "denies it."
    )
    with pytest.raises(HostDeniedError, match=r"localhost \(.*\) is not allowed: http.allowed.hosts"):
        connected(database, by_name, **{"http.allowed.hosts": "10.0.0.0/8"})
    assert connected(database, by_name, **{"http.allowed.hosts": LOOPBACK}) == 42
    # Of several addresses, those that are permitted are connected to.
    assert connected(database, by_name, **{"http.denied.hosts": "::1"}) == 42


@pytest.mark.parametrize("spelling", ["2130706433", "127.1", "0x7f.1", "0177.0.0.1"])
def test_no_spelling_of_an_address_evades_the_rules(database: Database, spelling: str) -> None:
    def spelled(place: str) -> str:
        return place.replace("127.0.0.1", spelling)

    assert connected(database, spelled) == 42
    with pytest.raises(HostDeniedError, match=rf"Connecting to {spelling} \(127\.0\.0\.1\) is not allowed"):
        connected(database, spelled, **{"http.denied.hosts": "127.0.0.1"})


def test_each_host_of_a_list_is_checked(postgresql: Database) -> None:
    def second(place: str) -> str:
        return f"nowhere.invalid,{by_name(place)}"

    assert connected(postgresql, second) == 42
    assert connected(postgresql, lambda place: f"127.0.0.1:1,{place}") == 42
    with pytest.raises(HostDeniedError, match=r"connection\.url: Connecting to localhost \("):
        connected(postgresql, second, **{"http.denied.hosts": LOOPBACK})
    # Whichever answers first.
    with pytest.raises(HostDeniedError, match=r"connection\.url: Connecting to 127\.5 \(127\.0\.0\.5\)"):
        connected(postgresql, lambda place: f"{by_name(place)},127.5:1", **{"http.denied.hosts": "127.0.0.5"})


def test_an_address_beside_the_name_is_what_is_checked(postgresql: Database) -> None:
    rules = {"jdbc.allowed.options": "hostaddr", "http.denied.hosts": "127.0.0.5"}
    assert connected(postgresql, lambda place: place, **rules, **{"connection.hostaddr": "127.0.0.1"}) == 42
    with pytest.raises(HostDeniedError) as refused:
        connected(postgresql, lambda place: place, **rules, **{"connection.hostaddr": "127.5"})
    assert str(refused.value) == (
        "connection.hostaddr: Connecting to 127.5 (127.0.0.5) is not allowed: http.denied.hosts in the worker's file "
        "denies it."
    )
    with pytest.raises(ConnectError, match=r"as many addresses as there are hosts \(1\)"):
        connected(postgresql, lambda place: place, **rules, **{"connection.hostaddr": "127.0.0.1,127.0.0.1"})


def test_a_socket_of_this_machine_is_this_machine(database: Database) -> None:
    option = "host" if database.product == "postgresql" else "unix_socket"
    props = {"jdbc.allowed.options": option, f"connection.{option}": "/nowhere/at.all"}
    with pytest.raises(HostDeniedError, match=rf"connection\.{option}: Connecting to localhost \("):
        connected(
            database, lambda place: place.replace("127.0.0.1", "db.example"), **props, **{"http.denied.hosts": LOOPBACK}
        )
    if database.product == "postgresql":
        with pytest.raises(RetriableError, match="Cannot connect in"):
            connected(database, **props)


def test_a_name_without_addresses_is_tried_again(database: Database) -> None:
    with pytest.raises(RetriableError, match=r"nowhere\.invalid.*attempt 1 of 1"):
        connected(database, lambda place: place.replace("127.0.0.1", "nowhere.invalid"))
    with pytest.raises(RetriableError, match=r"attempt 1 of 1"):
        connected(database, lambda _: "127.0.0.1:1")
