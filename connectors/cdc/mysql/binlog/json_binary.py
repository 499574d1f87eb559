"""MySQL's binary JSON: the text that MySQL itself would print, and changes of parts of a document.

A snapshot selects the text from the server, the log has the binary form; both must give one value.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.numbers import decimal_text

__all__ = ["apply_changes", "json_text"]

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING = range(5, 13)
_OPAQUE: Final = 15
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_NUMBERS: Final = {
    _INT16: struct.Struct("<h"),
    _UINT16: struct.Struct("<H"),
    _INT32: struct.Struct("<i"),
    _UINT32: struct.Struct("<I"),
    _INT64: struct.Struct("<q"),
    _UINT64: struct.Struct("<Q"),
}
_DOUBLES: Final = struct.Struct("<d")
_DATE, _TIME, _DATETIME, _TIMESTAMP, _DECIMAL = 10, 11, 12, 7, 246
_MAX_DEPTH: Final = 100
"""MySQL's own limit."""
_FIXED_DIGITS: Final = 15
"""Doubles whose decimal point lies further from the first digit are printed with an exponent."""

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_REPLACE, _INSERT, _REMOVE = range(3)
_LEG: Final = re.compile(r'\.("(?:[^"\\]|\\.)*"|[^.\["]+)|\[([0-9]+)\]')


def json_text(raw: bytes) -> str:
    """Return a document as MySQL prints it. Raises :class:`BinlogError` if it is damaged."""
    if not raw:
        return "null"  # MySQL stores a document that a column got by ALTER without a default as nothing.
    try:
        parts: list[str] = []
        _write(raw[0], raw, 1, len(raw), 0, parts)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise BinlogError(f"A JSON document of {len(raw)} bytes in the log is damaged.") from error
    return "".join(parts)


def _write(kind: int, raw: bytes, at: int, end: int, depth: int, parts: list[str]) -> None:
    if kind <= _LARGE_ARRAY:
        if depth > _MAX_DEPTH:
            raise BinlogError(f"A JSON document in the log is nested more than {_MAX_DEPTH} deep.")
        _write_container(kind, raw, at, end, depth, parts)
    elif kind == _LITERAL:
        parts.append(_LITERALS[raw[at]])
    elif kind in _NUMBERS:
        parts.append(str(_NUMBERS[kind].unpack_from(raw, at)[0]))
    elif kind == _DOUBLE:
        parts.append(double_text(_DOUBLES.unpack_from(raw, at)[0]))
    elif kind == _STRING:
        length, at = _length(raw, at)
        parts.append(quoted(_piece(raw, at, length).decode("utf-8")))
    elif kind == _OPAQUE:
        length, start = _length(raw, at + 1)
        parts.append(_opaque_text(raw[at], _piece(raw, start, length)))
    else:
        raise BinlogError(f"A JSON document in the log has a value of the unknown type {kind}.")


def _write_container(kind: int, raw: bytes, at: int, end: int, depth: int, parts: list[str]) -> None:
    large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
    is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)
    word, number = (4, "<I") if large else (2, "<H")
    count, size = struct.unpack_from("<II" if large else "<HH", raw, at)
    if at + size > end:
        raise BinlogError("A JSON document in the log is damaged: a part of it is larger than the whole.")
    entry = at + 2 * word
    values = entry + count * (word + 2 if is_object else 0)
    parts.append("{" if is_object else "[")
    for index in range(count):
        if index:
            parts.append(", ")
        if is_object:
            place = entry + index * (word + 2)
            (key_at,) = struct.unpack_from(number, raw, place)
            (key_length,) = struct.unpack_from("<H", raw, place + word)
            parts.append(quoted(_piece(raw, at + key_at, key_length).decode("utf-8")))
            parts.append(": ")
        place = values + index * (word + 1)
        inner = raw[place]
        if inner in (_LITERAL, _INT16, _UINT16) or (large and inner in (_INT32, _UINT32)):
            _write(inner, raw, place + 1, end, depth, parts)
        else:
            (offset,) = struct.unpack_from(number, raw, place + 1)
            if offset < 2 * word or offset >= size:
                raise BinlogError("A JSON document in the log is damaged: a part of it points outside.")
            _write(inner, raw, at + offset, at + size, depth + 1, parts)
    parts.append("}" if is_object else "]")


def _piece(raw: bytes, at: int, length: int) -> bytes:
    piece = raw[at : at + length]
    if len(piece) != length:
        raise IndexError
    return piece


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """A length of seven bits a byte, the lowest first, and where it ends."""
    length = shift = 0
    for place in range(at, at + 5):
        length |= (raw[place] & 0x7F) << shift
        if not raw[place] & 0x80:
            return length, place + 1
        shift += 7
    raise IndexError


def quoted(text: str) -> str:
    """Return text as a JSON string that MySQL would write."""
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text) + '"'


def double_text(value: float) -> str:
    """Return a double as MySQL prints it: the fewest digits, ``1.0``, ``1e20``, ``1.5e-20``."""
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0.0"
    if not -_FIXED_DIGITS < point <= _FIXED_DIGITS:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def _opaque_text(kind: int, raw: bytes) -> str:
    if kind == _DECIMAL:
        return decimal_text(raw[0], raw[1], raw, 2)
    if kind in (_DATE, _DATETIME, _TIMESTAMP):
        packed = int.from_bytes(raw[:8], "little", signed=True)
        micros, whole = packed & 0xFFFFFF, packed >> 24
        clock, day = whole & 0x1FFFF, whole >> 17
        months = day >> 5
        date = f"{months // 13:04d}-{months % 13:02d}-{day & 31:02d}"
        return quoted(date if kind == _DATE else f"{date} {_clock(clock, micros)}")
    if kind == _TIME:
        packed = int.from_bytes(raw[:8], "little", signed=True)
        sign, packed = ("-", -packed) if packed < 0 else ("", packed)
        return quoted(sign + _clock(packed >> 24, packed & 0xFFFFFF))
    return quoted(f"base64:type{kind}:{base64.b64encode(raw).decode('ascii')}")


def _clock(packed: int, micros: int) -> str:
    return f"{packed >> 12:02d}:{(packed >> 6) & 63:02d}:{packed & 63:02d}.{micros:06d}"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def apply_changes(text: str | None, changes: bytes) -> str | None:
    """Return a document after the changes of a partial update, and as MySQL prints it."""
    if text is None:
        raise BinlogError("A partial update of a JSON document in the log has no document before it to apply to.")
    document = json.loads(text, parse_float=_Number, parse_int=_Number)
    for operation, path, value in _changes(changes):
        new = json.loads(json_text(value), parse_float=_Number, parse_int=_Number) if operation != _REMOVE else None
        document = _changed(document, operation, _legs(path), new)
    parts: list[str] = []
    _print(document, parts)
    return "".join(parts)


def _changes(raw: bytes) -> Iterator[tuple[int, str, bytes]]:
    at = 0
    while at < len(raw):
        operation = raw[at]
        length, at = packed_length(raw, at + 1)
        path = _piece(raw, at, length).decode("utf-8")
        at += length
        value = b""
        if operation != _REMOVE:
            length, at = packed_length(raw, at)
            value = _piece(raw, at, length)
            at += length
        yield operation, path, value


def packed_length(raw: bytes, at: int) -> tuple[int, int]:
    """Read a length-encoded integer of the client protocol; return it and where it ends."""
    first = raw[at]
    if first < 251:
        return first, at + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise IndexError
    return int.from_bytes(_piece(raw, at + 1, size), "little"), at + 1 + size


def _legs(path: str) -> list[str | int]:
    """The steps of a path such as ``$.a[1]."b c"``."""
    rest = path.removeprefix("$")
    legs: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _LEG.match(rest, at)
        if match is None:
            raise BinlogError(f"A partial update of a JSON document in the log has the unreadable path {path}.")
        at = match.end()
        if match[2] is not None:
            legs.append(int(match[2]))
        else:
            legs.append(json.loads(match[1]) if match[1].startswith('"') else match[1])
    return legs


def _changed(document: Any, operation: int, legs: list[str | int], new: Any) -> Any:
    if not legs:
        return new
    parent = document
    try:
        for leg in legs[:-1]:
            # A scalar counts as an array of itself.
            parent = parent[leg] if isinstance(parent, (dict, list)) or leg != 0 else parent
        last = legs[-1]
        if operation == _REMOVE:
            del parent[last]
        elif isinstance(parent, list) and operation == _INSERT:
            parent.insert(int(last), new)
        else:
            parent[last] = new
    except (KeyError, IndexError, TypeError) as error:
        raise BinlogError(
            "A partial update of a JSON document in the log does not fit the document before it."
        ) from error
    return document


def _print(node: Any, parts: list[str]) -> None:
    if isinstance(node, dict):
        parts.append("{")
        # MySQL's order of keys: by length, then by bytes.
        ordered = sorted(((key.encode("utf-8"), key) for key in node), key=lambda pair: (len(pair[0]), pair[0]))
        for index, (_, key) in enumerate(ordered):
            parts.append(f"{', ' if index else ''}{quoted(key)}: ")
            _print(node[key], parts)
        parts.append("}")
    elif isinstance(node, list):
        parts.append("[")
        for index, item in enumerate(node):
            if index:
                parts.append(", ")
            _print(item, parts)
        parts.append("]")
    elif isinstance(node, _Number):
        parts.append(node)
    elif isinstance(node, str):
        parts.append(quoted(node))
    else:
        parts.append({None: "null", True: "true", False: "false"}[node])
