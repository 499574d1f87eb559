"""The worker's keys for its log and its metrics."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from worker.app.worker import log_levels
from worker.config.worker import StandaloneConfig

BASE = {
    "bootstrap.servers": "b:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "offset.storage.file.filename": "/tmp/x",
}


def test_levels_are_set_from_the_root_down() -> None:
    config = StandaloneConfig.parse({**BASE, "log.levels": "b.c=debug, b = WARN", "log.level": "Error"})
    assert log_levels(config) == [("root", "Error"), ("b", "WARN"), ("b.c", "debug")]
    assert log_levels(StandaloneConfig.parse(BASE)) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.levels", "a"),
        ("log.levels", "=INFO"),
        ("log.levels", "a=LOUD"),
        ("log.level", "LOUD"),
        ("log.format", "xml"),
        ("metrics.otlp.endpoint", "collector:4318"),
        ("metrics.otlp.endpoint", "http:///v1"),
        ("metrics.otlp.headers", "s3cret"),
        ("metrics.otlp.interval.ms", "0"),
    ],
)
def test_mistakes_name_the_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")) as caught:
        StandaloneConfig.parse({**BASE, key: value})
    assert "s3cret" not in str(caught.value)


def test_headers_are_a_secret() -> None:
    config = StandaloneConfig.parse({**BASE, "metrics.otlp.headers": "Authorization=Bearer x"})
    assert "Bearer" not in str(config.metrics_otlp_headers)
