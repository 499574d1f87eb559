"""Validators of keys of workers, and of the keys that choose the version of a plugin (KIP-891)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from connect.config import invalid_value, validator
from connect.config.errors import ConfigRuleError
from connect.internals.plugins.versions import VersionRange, VersionSpecError
from worker.loggers import LEVEL_NAMES
from worker.metrics.otlp import parse_headers

__all__ = [
    "CONNECTOR_VERSION",
    "absolute_path",
    "level_list",
    "metrics_headers",
    "metrics_url",
    "positive_or_default",
    "version_range",
]

_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)+/?")


@validator("Positive number, or -1 to use the broker's default")
def positive_or_default(key: str, value: int) -> None:
    """Check a number that may be left to the broker."""
    if value != -1 and value <= 0:
        raise invalid_value(key, value, "Value must be positive, or -1 to use the broker's default")


@validator("List of LOGGER=LEVEL")
def level_list(key: str, value: tuple[str, ...]) -> None:
    """Check the levels of individual loggers."""
    for entry in value:
        name, _, level = entry.partition("=")
        if not name.strip() or level.strip().upper() not in LEVEL_NAMES:
            raise invalid_value(key, entry, f"Write it as LOGGER=LEVEL, where LEVEL is {', '.join(LEVEL_NAMES)}")


@validator("URL that begins with http:// or https://")
def metrics_url(key: str, value: str | None) -> None:
    """Check the URL that metrics are pushed to."""
    if value is not None and not (value.startswith(("http://", "https://")) and urlsplit(value).hostname):
        raise invalid_value(key, value, "Write a URL such as http://collector:4318/v1/metrics")


@validator("List of NAME=VALUE")
def metrics_headers(key: str, value: str | None) -> None:
    """Check the headers of metrics pushes without showing them."""
    try:
        parse_headers(value or "")
    except ValueError as error:
        raise ConfigRuleError(f"{key} cannot be read. {error}.", key) from None


@validator("A path such as /connect, of letters, digits, -, _, . and ~; or empty")
def absolute_path(key: str, value: str) -> None:
    """Check the path below which the REST API is served."""
    if value and not _PATH.fullmatch(value):
        raise invalid_value(key, value, "It must be a path such as /connect, of letters, digits, -, _, . and ~")


CONNECTOR_VERSION: Final = "connector.plugin.version"


@validator("A version such as 1.0, a range of versions such as [1.0,2.0), or latest")
def version_range(key: str, value: str) -> None:
    """Check a range of versions."""
    try:
        VersionRange.parse(value)
    except VersionSpecError as error:
        raise invalid_value(key, value, str(error)) from None
