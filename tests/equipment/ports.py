"""Ports for the servers of tests. A port stays reserved for its server even while that is briefly down."""

from __future__ import annotations

import itertools
import os
import secrets
from typing import Final

from worker.embedded.ports import is_free

__all__ = ["own_port"]

# Below the ports that Sluice's embedded servers choose; each process of a test run has its own part of the range.
_LOWEST: Final = 10_000
_EACH: Final = 1_000
_PARTS: Final = 10

_begin: Final = secrets.randbelow(_EACH)
_turn: Final = itertools.count()


def own_port() -> int:
    """A free port that no other server of this test run gets, even while its own server does not listen."""
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
    ports = (_LOWEST + part * _EACH + (_begin + turn) % _EACH for turn in itertools.islice(_turn, _EACH))
    port = next(filter(is_free, ports), None)
    assert port is not None, f"none of {_EACH} ports is free"
    return port
