"""Values without a schema, to and from JSON: their Python types say all that is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Final

from connect.data.numerals import INT64_MAX, INT64_MIN, wrapped
from converters.json.errors import InexactError, UnfitError, place_of
from converters.json.written import encode_bytes, encode_float64

__all__ = ["UNTOUCHED", "decode_schemaless", "encode_schemaless"]

UNTOUCHED: Final = frozenset({str, bool, NoneType})
"""The types that are the same in JSON and in Python."""


def decode_schemaless(node: Any) -> Any:
    """The value of JSON without a schema: whole numbers are of 64 bits, all others are floats. It changes the node."""
    kind = node.__class__
    if kind in UNTOUCHED:
        return node
    if kind is int:
        return wrapped(node, 64)
    if kind is float:
        # A whole number of more than 64 bits is a float to orjson, a whole number to Kafka Connect.
        if abs(node) >= 2.0**63 and node.is_integer():
            raise InexactError
        return node
    # One frame a level: so many there may be.
    if kind is dict:
        for name, item in node.items():
            if item.__class__ not in UNTOUCHED:
                node[name] = decode_schemaless(item)
        return node
    if kind is list:
        for index, item in enumerate(node):
            if item.__class__ not in UNTOUCHED:
                node[index] = decode_schemaless(item)
        return node
    return float(node)


def encode_schemaless(value: Any) -> Any:
    """What orjson is to write for a value without a schema; ``UnfitError`` if it is of none of JSON's types.

    A map with a key that is no string becomes an array of pairs. The value stays as it is.
    """
    kind = value.__class__
    if kind in UNTOUCHED:
        return value
    if kind is float:
        return encode_float64(value)
    if kind is not dict and kind is not list:
        return _encode_unusual(value)
    parts, of_places = (value.items(), str) if kind is dict else (enumerate(value), int)
    encoded = value
    place: Any = None
    try:
        for place, item in parts:
            if place.__class__ is not of_places:
                return _encode_unusual(value)
            kind = item.__class__
            if (
                kind in UNTOUCHED
                or (kind is int and INT64_MIN <= item <= INT64_MAX)
                or (kind is float and 1e-3 <= item < 1e7)
            ):
                continue
            # One frame a level: so many there may be.
            after = encode_schemaless(item)
            if after is not item:
                if encoded is value:
                    encoded = value.copy()
                encoded[place] = after
    except UnfitError as error:
        error.within(place_of(place))
        raise
    return encoded


def _encode_unusual(value: Any) -> Any:
    """Subclasses, other implementations of Python's interfaces, and what has no counterpart in JSON."""
    match value:
        case str():
            return str(value)
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise UnfitError("the whole number does not fit 64 bits")
            return int(value)
        case float():
            return encode_float64(value)
        case Mapping():
            pairs = [[encode_schemaless(key), encode_schemaless(item)] for key, item in value.items()]
            return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
        case bytes() | bytearray() | memoryview():
            return encode_bytes(value)
        case Sequence():
            return encode_schemaless(list(value))
        case _:
            raise UnfitError(f"Python class {type(value).__name__} does not have corresponding schema type.")
