"""JSON in the exact bytes of Kafka Connect's JsonConverter without schemas, as in the internal topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from connect.errors import DataError

__all__ = ["dump", "load_object", "text", "whole"]

_ESCAPE = re.compile(rb"\\(?:u00([01][0-9a-f])|.)")


def dump(document: object) -> bytes:
    """Return the bytes of a document; the order of members is kept."""
    data = orjson.dumps(document)
    return _ESCAPE.sub(_upper, data) if rb"\u00" in data else data


def load_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises :class:`~connect.errors.DataError` if ``data`` is something else."""
    try:
        document = orjson.loads(data)
    except ValueError as error:
        raise DataError(f"it is not JSON ({error})") from None  # I8: the original contains the document
    if not isinstance(document, dict):
        raise DataError(f"it is a {type(document).__name__} where an object was expected")
    return document


def text(document: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a string."""
    value = document.get(name)
    if not isinstance(value, str):
        raise DataError(f"'{name}' should be a string but is {type(value).__name__}")
    return value


def whole(document: Mapping[str, Any], name: str) -> int:
    """Return a member that must be an integer."""
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"'{name}' should be a whole number but is {type(value).__name__}")
    return value


def _upper(match: re.Match[bytes]) -> bytes:
    """Write the digits of a control character in upper case, as Java does."""
    return rb"\u00" + match[1].upper() if match[1] else match[0]
