from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from connect.errors import ConfigError
from worker.embedded.broker.launch import choose_ports
from worker.embedded.broker.settings import Ports
from worker.embedded.ports import HOST, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


def test_any_port_is_free_and_not_for_outgoing_connections() -> None:
    ports = choose_ports(0, None)
    assert ports.broker != ports.controller
    assert is_free(ports.broker)
    assert is_free(ports.controller)
    assert max(ports.broker, ports.controller) < 32768
    assert ports.bootstrap_servers == f"127.0.0.1:{ports.broker}"


@pytest.mark.parametrize("wanted", [0, None])
def test_the_last_ports_are_kept(wanted: int | None) -> None:
    last = choose_ports(0, None)
    assert choose_ports(wanted, last) == last


def test_last_ports_that_are_taken_are_replaced(taken: int) -> None:
    ports = choose_ports(0, Ports(taken, taken))
    assert taken not in {ports.broker, ports.controller}


def test_a_port_that_must_be_had_comes_before_the_last() -> None:
    wanted, last = choose_ports(0, None).broker, choose_ports(0, None)
    assert choose_ports(wanted, last).broker == wanted


def test_a_port_that_must_be_had_and_is_taken_is_an_error(taken: int) -> None:
    with pytest.raises(ConfigError, match=f"{taken} for configuration port: in use by another process"):
        choose_ports(taken, None)
