"""Requests that are too slow, and requests that wait only for those of their kind."""

from __future__ import annotations

import pytest

from rest.server.limits import Limits, is_late
from rest.server.threads import RequestKind, kind_of

LIMITS = Limits(patience_seconds=10, body_bytes_per_second=1000)


@pytest.mark.parametrize(
    ("seconds", "body_bytes", "late"),
    [
        (10.0, 0, False),
        (10.1, 0, True),
        (10.1, 1000, False),
        (110.0, 100_000, False),
        (111.0, 100_000, True),
    ],
)
def test_a_request_has_the_time_that_its_size_takes(seconds: float, body_bytes: int, late: bool) -> None:
    assert is_late(seconds, body_bytes, LIMITS) is late


@pytest.mark.parametrize(
    ("method", "uri", "kind"),
    [
        ("GET", "/", RequestKind.HEALTH),
        ("GET", "/health/", RequestKind.HEALTH),
        ("HEAD", "/health?x=1", RequestKind.HEALTH),
        ("POST", "/connectors/a/tasks", RequestKind.PEER),
        ("POST", "/connectors/a/tasks?forward=true", RequestKind.PEER),
        ("PUT", "/connectors/a%2Fb/fence/", RequestKind.PEER),
        ("GET", "/connectors/a/status?forward=false", RequestKind.PEER),
        ("GET", "/connectors/a/history?step=2&forward=false", RequestKind.PEER),
        ("GET", "/history?step=10&forward=false", RequestKind.PEER),
        ("GET", "/history", RequestKind.OTHER),
        ("GET", "/connectors/a/measurements", RequestKind.OTHER),
        ("GET", "/connectors/a/measurements?forward=false", RequestKind.PEER),
        ("GET", "/connectors/a/tasks", RequestKind.READ),
        ("PUT", "/connectors/a/config?forward=true", RequestKind.PASSED_ON),
        ("POST", "/connectors?x=1&forward=false", RequestKind.PASSED_ON),
        ("GET", "/connectors/a/offsets?forward=true", RequestKind.PASSED_ON),
        ("GET", "/connectors?expand=status", RequestKind.READ),
        ("GET", "/connectors/a/config", RequestKind.READ),
        ("GET", "/connectors/a/offsets", RequestKind.OTHER),
        ("GET", "/connectors/a/lag", RequestKind.OTHER),
        ("GET", "/connectors/a/dlq?limit=1", RequestKind.OTHER),
        ("GET", "/connector-plugins/A/config", RequestKind.OTHER),
        ("PUT", "/connector-plugins/A/config/validate", RequestKind.OTHER),
        ("POST", "/connectors", RequestKind.OTHER),
        ("PUT", "/connectors/a/pause", RequestKind.OTHER),
        ("FETCH", "*", RequestKind.OTHER),
    ],
)
def test_a_request_waits_only_for_those_of_its_kind(method: str, uri: str, kind: RequestKind) -> None:
    assert kind_of(method, uri) is kind
