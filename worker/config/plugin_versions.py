"""Validates the ``plugin.version`` keys (KIP-891), which choose the version of a plugin."""

from __future__ import annotations

from typing import Final

from connect.config import invalid_value
from connect.config.validators import validator
from connect.internals.plugins.versions import VersionRange, VersionSpecError

__all__ = ["CONNECTOR_VERSION", "version_range"]

CONNECTOR_VERSION: Final = "connector.plugin.version"


@validator("A version such as 1.0, a range of versions such as [1.0,2.0), or latest")
def version_range(key: str, value: str) -> None:
    """Check a range of versions."""
    try:
        VersionRange.parse(value)
    except VersionSpecError as error:
        raise invalid_value(key, value, str(error)) from None
