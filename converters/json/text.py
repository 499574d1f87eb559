"""JSON text as Jackson reads and writes it."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import orjson

from connect.errors import DataError

__all__ = ["as_jackson", "dump", "needs_escapes", "parse_exactly"]

_MOST_DIGITS: Final = 1000
_WHITE_SPACE: Final = " \t\r\n"
_LEADING_ZEROS: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|(?<![\w.+\-])(-?)0+(?=[0-9])', re.DOTALL | re.ASCII)
_ESCAPE: Final = re.compile(rb"\\(?:u00([0-9a-f]{2})|.)", re.DOTALL)
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")


def parse_exactly(data: bytes) -> Any:
    """The first JSON value in ``data``, fractions as :class:`~decimal.Decimal`; nothing but white space is ``None``.

    What strict JSON refuses but Kafka Connect takes is taken: zeros before a number and text after the value.
    Raises :class:`~connect.errors.DataError` for all else.
    """
    try:
        text = data.decode("utf-8").removeprefix("\ufeff").lstrip(_WHITE_SPACE)
        if not text:
            return None
        text = _LEADING_ZEROS.sub(lambda match: match[2] if match[1] is None else match[1], text)
        value, end = _DECODER.raw_decode(text)
        if text[end - 1] not in '}]"' and text[end : end + 1].strip(_WHITE_SPACE):
            raise _unreadable(f"unexpected {text[end]!r} after the value")
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except RecursionError as error:
        raise _unreadable("it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise _unreadable(f"it is not UTF-8: {error}") from error
    except UnicodeEncodeError as error:
        raise _unreadable("half of a surrogate pair is no character") from error
    except ValueError as error:
        raise _unreadable(str(error)) from error
    return value


def dump(value: Any) -> bytes:
    """The JSON text of a value that holds only what JSON has; byte for byte as Jackson writes it."""
    try:
        return as_jackson(orjson.dumps(value))
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise DataError(f"The value cannot be written as JSON: {error}") from error


def as_jackson(text: bytes) -> bytes:
    """JSON text by orjson with the escapes that Jackson uses: upper case, and for what lies beyond 16 bits."""
    if b"\\u" in text:
        text = _ESCAPE.sub(_upper_escape, text)
    return text if text.isascii() else _ASTRAL.sub(_surrogate_escape, text)


def needs_escapes(text: bytes) -> bool:
    """Whether :func:`as_jackson` may change JSON text by orjson."""
    # Mostly there is no backslash at all, and one byte is found much faster than two.
    return (b"\\" in text and b"\\u" in text) or not (text.isascii() or _ASTRAL.search(text) is None)


def _upper_escape(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    return match[0] if digits is None else b"\\u00" + digits.upper()


def _surrogate_escape(match: re.Match[bytes]) -> bytes:
    offset = ord(match[0].decode()) - 0x10000
    return b"\\u%04X\\u%04X" % (0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF))


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits, which are more than {_MOST_DIGITS}")
    return int(text)


def _fraction(text: str) -> Decimal:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits, which are more than {_MOST_DIGITS}")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"the number {text} is out of all range") from error


def _not_a_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _unreadable(reason: str) -> DataError:
    text = "Converting byte[] to Kafka Connect data failed due to serialization error"
    return DataError(f"{text}: the data is no valid JSON: {reason}")


_DECODER: Final = json.JSONDecoder(parse_float=_fraction, parse_int=_whole, parse_constant=_not_a_number, strict=True)
