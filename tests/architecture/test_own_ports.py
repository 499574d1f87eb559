"""The ports that servers of tests get."""

from __future__ import annotations

from equipment.ports import own_port


def test_no_port_is_given_twice_though_nobody_listens() -> None:
    ports = [own_port() for _ in range(100)]
    assert len(set(ports)) == 100
