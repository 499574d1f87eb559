"""Scalars as Java writes them in JSON.

What orjson writes otherwise (floats in scientific notation) is handed to it as a ready fragment.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any, Final

import orjson

from connect.data.numerals import double_text, float_text, single
from converters.json.errors import WrongTypeError

__all__ = ["encode_bytes", "encode_float32", "encode_float64", "encode_float64_column"]

_EXACT_IN_DOUBLE: Final = 2**53


def encode_float64(value: Any) -> Any:
    """What orjson is to write for a float: the float itself where Java, too, writes it in plain decimals."""
    number = value if value.__class__ is float else _number(value)
    if 1e-3 <= number < 1e7 or -1e7 < number <= -1e-3 or number == 0:
        return float(number)
    text = double_text(number)
    return orjson.Fragment(text.encode()) if math.isfinite(number) else text


def encode_float64_column(column: Sequence[Any]) -> Sequence[Any]:
    """What orjson is to write for many floats; the column itself if all of them are written in plain decimals."""
    sizes = list(map(abs, column))
    # A NaN, which min and max may miss, makes the sum one.
    if not math.isnan(sum(sizes)) and max(sizes) < 1e7 and min(filter(None, sizes), default=1.0) >= 1e-3:
        return column
    return list(map(encode_float64, column))


def encode_float32(value: Any) -> Any:
    """What orjson is to write for a float of single precision."""
    number = _number(value)
    rounded = single(number)
    if not math.isfinite(rounded):
        if math.isfinite(number):
            raise WrongTypeError("it is too large for single precision")
        return float_text(rounded)
    short = float(f"{rounded:.6g}")
    if single(short) == rounded and 1e-3 <= abs(short) < 1e7:
        return short  # what is written of this double is what Java writes of the single
    return orjson.Fragment(float_text(rounded).encode())


def _number(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > _EXACT_IN_DOUBLE:
            raise WrongTypeError("it may not be held exactly; make it a float to have it rounded")
        return float(value)
    raise WrongTypeError


def encode_bytes(value: Any) -> str:
    """The base64 text of bytes."""
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    raise WrongTypeError
