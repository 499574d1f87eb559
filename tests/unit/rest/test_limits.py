"""Who is given up, and which requests wait for which."""

from __future__ import annotations

import pytest

from rest.server.limits import Limits, is_late
from rest.server.places import Place, place_of

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
    ("method", "uri", "place"),
    [
        ("GET", "/", Place.HEALTH),
        ("GET", "/health/", Place.HEALTH),
        ("HEAD", "/health?x=1", Place.HEALTH),
        ("POST", "/connectors/a/tasks", Place.PEER),
        ("POST", "/connectors/a/tasks?forward=true", Place.PEER),
        ("PUT", "/connectors/a%2Fb/fence/", Place.PEER),
        ("GET", "/connectors/a/status?forward=false", Place.PEER),
        ("GET", "/connectors/a/tasks", Place.READ),
        ("PUT", "/connectors/a/config?forward=true", Place.PASSED_ON),
        ("POST", "/connectors?x=1&forward=false", Place.PASSED_ON),
        ("GET", "/connectors/a/offsets?forward=true", Place.PASSED_ON),
        ("GET", "/connectors?expand=status", Place.READ),
        ("GET", "/connectors/a/config", Place.READ),
        ("GET", "/connectors/a/offsets", Place.OTHER),
        ("GET", "/connectors/a/lag", Place.OTHER),
        ("GET", "/connectors/a/dlq?limit=1", Place.OTHER),
        ("GET", "/connector-plugins/A/config", Place.OTHER),
        ("PUT", "/connector-plugins/A/config/validate", Place.OTHER),
        ("POST", "/connectors", Place.OTHER),
        ("PUT", "/connectors/a/pause", Place.OTHER),
        ("FETCH", "*", Place.OTHER),
    ],
)
def test_a_request_waits_only_for_those_of_its_kind(method: str, uri: str, place: Place) -> None:
    assert place_of(method, uri) is place
