"""Values as text the way Java's ``toString`` has them, which is what the file sink writes."""

from __future__ import annotations

import base64
import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, singledispatch
from typing import Any, Final

from connect.data import Schema, Type
from connect.data.logical import EPOCH

__all__ = ["renderer"]

_Render = Callable[[Any], str]

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FLOAT32_DIGITS: Final = 9
_FLOAT64_DIGITS: Final = 17


@lru_cache(maxsize=256)
def renderer(schema: Schema | None) -> Callable[[Any], str]:
    """The function that gives the text of values of ``schema``; ``None``: of schemaless values.

    As in Java: null is ``null``, a struct ``Struct{a=1,b=x}`` without the fields that are null, a map
    ``{k=v, l=w}``, an array ``[1, 2]``, a date, time or timestamp ``Sat Nov 21 00:18:26 UTC 2026`` in the
    zone of the machine, and a float has at least one digit after the point. Other than in Java, whose text of
    bytes is an address in memory, bytes are in Base64, and the entries of a map are in their own order.
    """
    by_schema = None if schema is None else _BY_SCHEMA.get(schema.type)
    if schema is None or by_schema is None:
        return _render
    return _nullable(by_schema(schema))


def _nullable(render: _Render) -> _Render:
    return lambda value: "null" if value is None else render(value)


def _struct_renderer(schema: Schema) -> _Render:
    fields = [(field.name, renderer(field.schema)) for field in schema.fields]

    def render(value: Mapping[str, Any]) -> str:
        given = [(name, item, member) for name, member in fields if (item := value.get(name)) is not None]
        return f"Struct{{{','.join(f'{name}={member(item)}' for name, item, member in given)}}}"

    return render


def _array_renderer(schema: Schema) -> _Render:
    item = renderer(schema.value_schema)
    return lambda value: f"[{', '.join(map(item, value))}]"


def _map_renderer(schema: Schema) -> _Render:
    key, item = renderer(schema.key_schema), renderer(schema.value_schema)

    def render(value: Mapping[Any, Any]) -> str:
        return "{" + ", ".join(f"{key(name)}={item(member)}" for name, member in value.items()) + "}"

    return render


@singledispatch
def _render(value: object) -> str:
    """The text of a value by what it is."""
    return str(value)


@_render.register
def _null(value: None) -> str:  # noqa: ARG001
    return "null"


@_render.register
def _boolean(value: bool) -> str:
    return "true" if value else "false"


@_render.register(bytes)
@_render.register(bytearray)
@_render.register(memoryview)
def _bytes(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode()


@_render.register(dict)
def _schemaless_map(value: Mapping[Any, Any]) -> str:
    return "{" + ", ".join(f"{_render(name)}={_render(member)}" for name, member in value.items()) + "}"


@_render.register(list)
@_render.register(tuple)
def _schemaless_array(value: Sequence[Any]) -> str:
    return f"[{', '.join(map(_render, value))}]"


@_render.register(dt.date)
@_render.register(dt.time)
def _date(value: dt.date | dt.time) -> str:
    """As java.util.Date: a date is midnight in UTC, a time of day one on 1970-01-01."""
    if isinstance(value, dt.time):
        value = dt.datetime.combine(EPOCH.date(), value, dt.UTC)
    elif not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time(), dt.UTC)
    local = value.astimezone()
    day, month = _DAYS[local.weekday()], _MONTHS[local.month - 1]
    return f"{day} {month} {local.day:02} {local:%H:%M:%S} {local.tzname()} {local.year}"


@_render.register
def _float64(value: float) -> str:
    text = repr(value)
    if 1e-3 <= abs(value) < 1e7:
        return text
    # Two digits at least, because Java looks for the nearest decimal of two before it makes do with one.
    digits = max(2, len(text.partition("e")[0].replace(".", "").strip("-0")))
    return _scientific(value, min(digits, _FLOAT64_DIGITS))


def _float32(value: float) -> str:
    """The shortest decimal that is the same number in single precision."""
    single = _single(value)
    if not math.isfinite(single):
        return _scientific(single, 1)
    for digits in range(2, _FLOAT32_DIGITS + 1):
        shortest = float(f"{single:.{digits - 1}e}")
        if _single(shortest) == single:
            break
    return repr(shortest) if 1e-3 <= abs(single) < 1e7 else _scientific(shortest, digits)


def _single(value: float) -> float:
    """The nearest number of single precision."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


def _scientific(value: float, digits: int) -> str:
    """Computerised scientific notation: ``1.0E10``. Zero and what is not finite have words of their own."""
    if value == 0:
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    if "." in mantissa:
        whole, _, fraction = mantissa.partition(".")
        mantissa = f"{whole}.{fraction.rstrip('0') or '0'}"
    return f"{mantissa}E{int(exponent)}"


_BY_SCHEMA: Final[Mapping[Type, Callable[[Schema], _Render]]] = {
    Type.STRUCT: _struct_renderer,
    Type.ARRAY: _array_renderer,
    Type.MAP: _map_renderer,
    Type.FLOAT32: lambda _: _float32,
    Type.FLOAT64: lambda _: lambda value: _float64(float(value)),
}
