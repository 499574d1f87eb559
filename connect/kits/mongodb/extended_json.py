"""MongoDB's Extended JSON, read: in its canonical, relaxed and older strict forms."""

from __future__ import annotations

import datetime as dt
import json
import re
from functools import cache
from typing import Any, Final

import orjson

from connect.data.logical import milliseconds_from_timestamp
from connect.errors import DataError

__all__ = ["parse_array", "parse_document"]

_LONG_NUMBER: Final = re.compile(r"\d{19}")
"""Numbers that orjson may turn into floats."""


def parse_document(text: str | bytes) -> dict[str, Any]:
    """Return the document that a JSON object stands for; a ``DataError`` if the text is none."""
    found = _parsed(text)
    if not isinstance(found, dict):
        kind = {list: "an array", str: "a string", type(None): "null"}.get(type(found), "a value")
        raise DataError(f"The JSON is {kind}, not an object: only objects can become documents.")
    return found


def parse_array(text: str) -> list[Any]:
    """Return the documents and values of a JSON array; a ``DataError`` if the text is none."""
    found = _parsed(text)
    if not isinstance(found, list):
        raise DataError("It is not a JSON array.")
    return found


def _parsed(text: str | bytes) -> Any:
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"The text is not UTF-8: {error}") from error
    if '"$' in text or "\\u0024" in text:
        return _with_types(text)
    if not _LONG_NUMBER.search(text):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            # It may have NaN, or be nested too deeply for orjson.
            pass
    return _plain(text)


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The text is not JSON: {error}") from error


def _with_types(text: str) -> Any:
    from bson.errors import BSONError  # noqa: PLC0415 - the driver is loaded only where it is used

    try:
        return json.loads(text, object_hook=_object_hook())
    except RecursionError as error:
        raise DataError(f"The text is not JSON: {error}") from error
    except (ValueError, TypeError, KeyError, ArithmeticError, BSONError) as error:
        raise DataError(f"The text is not Extended JSON: {error}") from error


@cache
def _object_hook() -> Any:
    from bson import json_util  # noqa: PLC0415
    from bson.codec_options import DatetimeConversion  # noqa: PLC0415
    from bson.datetime_ms import DatetimeMS  # noqa: PLC0415
    from bson.dbref import DBRef  # noqa: PLC0415

    options = json_util.JSONOptions(
        json_mode=json_util.JSONMode.CANONICAL, datetime_conversion=DatetimeConversion.DATETIME_MS, tz_aware=False
    )

    def hook(found: dict[str, Any]) -> Any:
        if len(found) == 1 and isinstance(date := found.get("$date"), str):
            # The driver's own reading of fractions of seconds is off by a millisecond at times.
            return DatetimeMS(_instant(date))
        made = json_util.object_hook(found, options) if any(key.startswith("$") for key in found) else found
        # Java keeps a reference as the document that it is.
        return made.as_doc().to_dict() if isinstance(made, DBRef) else made

    return hook


def _instant(text: str) -> int:
    """Return the milliseconds since the epoch of an ISO date; without a zone it is in UTC."""
    moment = dt.datetime.fromisoformat(text)
    return milliseconds_from_timestamp(moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC))
