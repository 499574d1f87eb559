"""Events and documents as JSON text: by the three forms of the Java connector.

The driver's decoder makes the JSON form of each value while it decodes, in C, so that the document is walked once.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from bson import decode, encode
from bson.binary import Binary
from bson.code import Code
from bson.codec_options import CodecOptions, DatetimeConversion, TypeDecoder, TypeRegistry
from bson.datetime_ms import DatetimeMS
from bson.dbref import DBRef
from bson.decimal128 import Decimal128
from bson.int64 import Int64
from bson.max_key import MaxKey
from bson.min_key import MinKey
from bson.objectid import ObjectId
from bson.regex import Regex
from bson.timestamp import Timestamp

from connect.data import Schema
from connect.internals.java.value_text import value_text

__all__ = ["PLAIN", "JsonFormat", "json_format"]

PLAIN: Final[CodecOptions[dict[str, Any]]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)
"""Options with which BSON is decoded without a form: values keep their types."""

_REGEX_FLAGS: Final = (("i", 2), ("l", 4), ("m", 8), ("s", 16), ("u", 32), ("x", 64))
_FLOAT64: Final = Schema.float64()
_YEAR_10000: Final = 253_402_300_800_000
_Write = Callable[[Any], Any]


class JsonFormat:
    """Writes BSON as JSON in one of the forms."""

    def __init__(
        self, writers: Mapping[type, _Write], *, has_nan: bool, separators: tuple[str, str] = (", ", ": ")
    ) -> None:
        # Documents of BSON do not contain themselves: looking for that would cost a fifth of the time.
        self._encode = json.JSONEncoder(
            ensure_ascii=False, check_circular=False, allow_nan=has_nan, separators=separators
        ).encode
        self.options: CodecOptions[dict[str, Any]] = CodecOptions(
            datetime_conversion=DatetimeConversion.DATETIME_MS,
            type_registry=TypeRegistry([_decoder(kind, write) for kind, write in writers.items()]),
        )

    def decoded(self, data: bytes) -> dict[str, Any]:
        """Return a document whose values are as JSON has them, to be written by :meth:`text`."""
        return decode(data, self.options)

    def text(self, value: Any) -> str:
        """Return the JSON text of a decoded value."""
        try:
            return self._encode(value)
        except ValueError:
            return self._encode(_without_nan(value))

    def text_of(self, value: Any) -> str:
        """Return the JSON text of a value as the driver decodes it without a format."""
        return self.text(self.decoded(encode({"v": value}))["v"])


def json_format(name: str, separators: tuple[str, str] = (", ", ": ")) -> JsonFormat:
    """Return the form of a name: DefaultJson, ExtendedJson, SimplifiedJson or RelaxedJson."""
    match name:
        case "RelaxedJson":
            return JsonFormat(_SHARED | _RELAXED, has_nan=False, separators=separators)
        case "ExtendedJson":
            return JsonFormat(_SHARED | _CANONICAL, has_nan=True)
        case "SimplifiedJson":
            return JsonFormat(_SHARED | _SIMPLIFIED, has_nan=False)
        case _:
            return JsonFormat(_SHARED | _STRICT, has_nan=True, separators=separators)


def _decoder(kind: type, write: _Write) -> TypeDecoder:
    class Decoder(TypeDecoder):
        bson_type = kind

        def transform_bson(self, value: Any) -> Any:
            return write(value)

    return Decoder()


def _options_of(regex: Regex[Any]) -> str:
    return "".join(letter for letter, flag in _REGEX_FLAGS if regex.flags & flag)


def _pattern_of(regex: Regex[Any]) -> str:
    return regex.pattern.decode("utf-8", "replace") if isinstance(regex.pattern, bytes) else regex.pattern


def _code(value: Code) -> dict[str, Any]:
    return {"$code": str(value)} if value.scope is None else {"$code": str(value), "$scope": dict(value.scope)}


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _subtype(value: bytes) -> str:
    return f"{value.subtype:02x}" if isinstance(value, Binary) else "00"


def _iso(value: DatetimeMS) -> str:
    """Return a date as Java's ISO_DATE_TIME writes it: fractions of seconds without zeros at their end."""
    milliseconds = int(value)
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=milliseconds)
    except OverflowError:
        # Beyond the year 9999 Python has no dates: the number tells as much.
        return str(milliseconds)
    fraction = f".{moment.microsecond // 1000:03d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{fraction}Z"


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$numberDouble": value_text(_FLOAT64, value)}
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list) else value


def _long(value: int) -> dict[str, str]:
    return {"$numberLong": str(value)}


def _reference(value: DBRef) -> Any:
    return dict(value.as_doc())


_SHARED: Final[dict[type, _Write]] = {
    Timestamp: lambda value: {"$timestamp": {"t": value.time, "i": value.inc}},
    MinKey: lambda _: {"$minKey": 1},
    MaxKey: lambda _: {"$maxKey": 1},
    Code: _code,
    DBRef: _reference,
    Decimal128: lambda value: {"$numberDecimal": str(value)},
    ObjectId: lambda value: {"$oid": str(value)},
}
_STRICT: Final[dict[type, _Write]] = {
    Int64: lambda value: {"$numberLong": str(value)},
    DatetimeMS: lambda value: {"$date": int(value)},
    bytes: lambda value: {"$binary": _base64(value), "$type": "00"},
    Binary: lambda value: {"$binary": _base64(value), "$type": _subtype(value)},
    Regex: lambda value: {"$regex": _pattern_of(value), "$options": _options_of(value)},
}
_EXTENDED_REGEX: Final[dict[type, _Write]] = {
    Regex: lambda value: {"$regularExpression": {"pattern": _pattern_of(value), "options": _options_of(value)}},
}
_CANONICAL: Final[dict[type, _Write]] = _EXTENDED_REGEX | {
    int: lambda value: {"$numberInt": str(value)},
    Int64: lambda value: {"$numberLong": str(value)},
    float: lambda value: {"$numberDouble": value_text(_FLOAT64, value)},
    DatetimeMS: lambda value: {"$date": {"$numberLong": str(int(value))}},
    bytes: lambda value: {"$binary": {"base64": _base64(value), "subType": "00"}},
    Binary: lambda value: {"$binary": {"base64": _base64(value), "subType": _subtype(value)}},
}
_RELAXED: Final[dict[type, _Write]] = _EXTENDED_REGEX | {
    DatetimeMS: lambda value: {"$date": _iso(value) if 0 <= int(value) < _YEAR_10000 else _long(int(value))},
    bytes: lambda value: {"$binary": {"base64": _base64(value), "subType": "00"}},
    Binary: lambda value: {"$binary": {"base64": _base64(value), "subType": _subtype(value)}},
}
_SIMPLIFIED: Final[dict[type, _Write]] = _EXTENDED_REGEX | {
    DatetimeMS: _iso,
    bytes: _base64,
    Binary: _base64,
    Decimal128: str,
    ObjectId: str,
}
