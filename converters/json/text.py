"""Parsing and writing of JSON text as in Jackson."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeVar

import orjson

from connect.errors import DataError
from converters.json.nesting import TOO_DEEP, check_depth, dump_deep

__all__ = [
    "MOST_DIGITS",
    "WHITE_SPACE",
    "as_jackson",
    "dump",
    "exactly",
    "is_brief",
    "needs_escapes",
    "parse_exactly",
    "parse_first",
]

T = TypeVar("T")
Parse = Callable[[str, int], tuple[Any, int]]
"""Parses the JSON value at an index of a text. Returns it with the index after it."""

WHITE_SPACE: Final = b" \t\r\n"
_BLANKS: Final = WHITE_SPACE.decode()
_BYTE_ORDER_MARK: Final = "\ufeff"
MOST_DIGITS: Final = 1000
"""The most characters of a number that is read or written, as in Java."""
# An unterminated string extends to the end of the text, so nothing in it is scanned twice.
_LEADING_ZEROS: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)|(?<![\w.+\-])(-?)0+(?=[0-9])', re.DOTALL | re.ASCII)
_OF_NUMBERS: Final = bytes.maketrans(b"123456789.eE+-", b"0" * 14)
_LONG_NUMBER: Final = b"0" * (MOST_DIGITS + 1)
_OF_BRIEF: Final = bytes.maketrans(b"123456789E", b"000000000e")
_MANY_DIGITS: Final = b"0" * 16
_SMALL: Final = b"0e-000"
_ESCAPE: Final = re.compile(rb"\\(?:u00([0-9a-f]{2})|.)", re.DOTALL)
_ASTRAL: Final = re.compile(rb"[\xf0-\xf4][\x80-\xbf]{3}")


def parse_exactly(data: bytes) -> Any:
    """Parse the first JSON value in ``data``, with fractions as :class:`~decimal.Decimal`. White space is ``None``.

    Like Kafka Connect, accepts leading zeros in numbers and text after the value, which strict JSON does not allow.
    Raises :class:`~connect.errors.DataError` for all other invalid JSON.
    """
    if not data.strip(WHITE_SPACE):
        return None
    value, rest = parse_first(data)
    if rest and value.__class__ not in _ENCLOSED and rest[0] not in _BLANKS:
        raise _unreadable(f"unexpected {rest[0]!r} after the value")
    return value


def parse_first(data: bytes) -> tuple[Any, str]:
    """Parse the first JSON value in ``data`` like :func:`parse_exactly`. Return it with the text that follows it."""

    def read(text: str, parse: Parse) -> tuple[Any, str]:
        start = len(text) - len(text.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANKS))
        value, end = parse(text, start)
        if "0" <= text[end : end + 1] <= "9":
            raise ValueError("a number begins with a zero")
        check_depth(text[start:end].encode())
        return value, text[end:]

    return exactly(data, read)


def exactly(data: bytes, read: Callable[[str, Parse], T]) -> T:
    """Return the result of ``read``, called with the JSON text and a parser for its values.

    If it fails and numbers in the text have leading zeros, it is called again with the text without them. Its errors
    are converted to :class:`~connect.errors.DataError`.
    """
    try:
        text = data.decode("utf-8")
        is_long = len(data) > MOST_DIGITS and _LONG_NUMBER in data.translate(_OF_NUMBERS)
        parse = (_CAREFUL if is_long else _QUICK).raw_decode
        try:
            return _checked(text, read, parse)
        except ValueError:
            without_zeros = _LEADING_ZEROS.sub(_significant, text)
            if without_zeros == text:
                raise
        return _checked(without_zeros, read, parse)
    except RecursionError as error:
        raise DataError(TOO_DEEP) from error
    except UnicodeDecodeError as error:
        raise _unreadable(f"it is not UTF-8: {error}") from error
    except UnicodeEncodeError as error:
        raise _unreadable("half of a surrogate pair is no character") from error
    except ArithmeticError as error:
        raise _unreadable("a number is out of all range") from error
    except ValueError as error:
        raise _unreadable(str(error)) from error


def is_brief(text: bytes) -> bool:
    """Return whether all numbers in JSON text are so short that double precision floats represent them unambiguously.

    That holds for up to fifteen digits, unless a number is so small that its exponent has three digits.
    """
    digits = text.translate(_OF_BRIEF, b".")
    return _MANY_DIGITS not in digits and _SMALL not in digits


def _checked(text: str, read: Callable[[str, Parse], T], parse: Parse) -> T:
    found = read(text, parse)
    if "\\u" in text:
        json.dumps(found, ensure_ascii=False, default=str).encode()
    return found


def _significant(match: re.Match[str]) -> str:
    """Return a string unchanged, and for leading zeros only the sign before them."""
    return match[2] if match[1] is None else match[1]


def dump(value: Any) -> bytes:
    """Return the JSON text of a value made of JSON's own types, byte for byte as Jackson writes it."""
    try:
        return as_jackson(orjson.dumps(value))
    except orjson.JSONEncodeError:
        # The value may be nested too deeply for orjson; if not, this raises the same error again.
        return _dump_deep(value)


def _dump_deep(value: Any) -> bytes:
    try:
        return as_jackson(dump_deep(value))
    except orjson.JSONEncodeError as error:
        raise DataError(f"The value cannot be written as JSON: {error}") from error


def as_jackson(text: bytes) -> bytes:
    """Replace the escapes in orjson's text with Jackson's: in upper case, and also for characters beyond 16 bits."""
    # Usually there is no backslash at all, and searching for one byte is much faster than for two.
    if b"\\" in text and b"\\u" in text:
        text = _ESCAPE.sub(_upper_escape, text)
    return text if text.isascii() else _ASTRAL.sub(_surrogate_escape, text)


def needs_escapes(text: bytes) -> bool:
    """Return whether :func:`as_jackson` may change text written by orjson."""
    return (b"\\" in text and b"\\u" in text) or not (text.isascii() or _ASTRAL.search(text) is None)


def _upper_escape(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    return match[0] if digits is None else b"\\u00" + digits.upper()


def _surrogate_escape(match: re.Match[bytes]) -> bytes:
    offset = ord(match[0].decode()) - 0x10000
    return b"\\u%04X\\u%04X" % (0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF))


def _whole(text: str) -> int:
    _check_length(text)
    return int(text)


def _fraction(text: str) -> Decimal:
    _check_length(text)
    return Decimal(text)


def _check_length(text: str) -> None:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits, which are more than {MOST_DIGITS}")


def _not_a_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _unreadable(reason: str) -> DataError:
    text = "Converting byte[] to Kafka Connect data failed due to serialization error"
    return DataError(f"{text}: the data is not valid JSON: {reason}")


_ENCLOSED: Final = frozenset({str, list, dict})
_QUICK: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_not_a_number)
_CAREFUL: Final = json.JSONDecoder(parse_float=_fraction, parse_int=_whole, parse_constant=_not_a_number)
