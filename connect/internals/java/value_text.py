"""The text of values as Java's ``toString`` prints them, as written by the string converter and the file sink."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any, Final, TypeAlias

from connect.data import Schema, Type
from connect.data.logical import instant_in_utc
from connect.data.numerals import double_text, float_text, integer_text
from connect.errors import DataError
from connect.internals.java.calendar_fields import calendar_day

__all__ = ["text_renderer", "value_text"]

Render: TypeAlias = Callable[[Any], str]

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def value_text(schema: Schema | None, value: Any) -> str:
    """Return the text of a value, with dates and times in UTC; see :func:`text_renderer`."""
    return text_renderer(schema, dt.UTC)(value)


@lru_cache(maxsize=256)
def text_renderer(schema: Schema | None, zone: dt.tzinfo | None) -> Render:
    """Return the function that formats values of ``schema``, or schemaless values if it is ``None``.

    As in Java: null is ``null``, a struct ``Struct{a=1,b=x}`` without its null fields, a map ``{k=v, l=w}``, an array
    ``[1, 2]``, a float ``1.0E10``, and a date, time or timestamp ``Sat Nov 21 00:18:26 UTC 2026`` in ``zone``, or in
    the machine's zone if that is ``None``. Unlike in Java, bytes are written in Base64 instead of as a memory address,
    and the entries of a map keep their order.

    The function raises :class:`~connect.errors.DataError` for an object of a type that Kafka Connect lacks.
    """
    render = _renderer(schema, zone)

    def checked(value: Any) -> str:
        try:
            return render(value)
        except RecursionError as error:
            raise DataError(f"The {type(value).__name__} is nested too deep to be written as text.") from error

    return checked


@lru_cache(maxsize=256)
def _renderer(schema: Schema | None, zone: dt.tzinfo | None) -> Render:
    make = None if schema is None else _BY_TYPE.get(schema.type)
    plain = _plain_renderer(zone)
    return plain if schema is None or make is None else make(schema, zone, plain)


# -- values by their schema --------------------------------------------------------------------------------------
# A value that does not match its schema, such as null, is written according to its own type.


def _struct_renderer(schema: Schema, zone: dt.tzinfo | None, plain: Render) -> Render:
    fields = [(field.name, _renderer(field.schema, zone)) for field in schema.fields]

    def render(value: Any) -> str:
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return plain(value)
        given = [(name, item, member) for name, member in fields if (item := value.get(name)) is not None]
        return f"Struct{{{','.join([f'{name}={member(item)}' for name, item, member in given])}}}"

    return render


def _array_renderer(schema: Schema, zone: dt.tzinfo | None, plain: Render) -> Render:
    item = _renderer(schema.value_schema, zone)
    return lambda value: f"[{', '.join(map(item, value))}]" if value.__class__ is list else plain(value)


def _map_renderer(schema: Schema, zone: dt.tzinfo | None, plain: Render) -> Render:
    key, item = _renderer(schema.key_schema, zone), _renderer(schema.value_schema, zone)

    def render(value: Any) -> str:
        if value.__class__ is not dict and not isinstance(value, Mapping):
            return plain(value)
        return "{" + ", ".join([f"{key(name)}={item(member)}" for name, member in value.items()]) + "}"

    return render


def _float_renderer(_schema: Schema, _zone: dt.tzinfo | None, plain: Render, *, text: Callable[[float], str]) -> Render:
    def render(value: Any) -> str:
        if value.__class__ is float:
            return text(value)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return plain(value)
        try:
            return text(float(value))
        except OverflowError:
            return plain(value)

    return render


def _float32_renderer(schema: Schema, zone: dt.tzinfo | None, plain: Render) -> Render:
    return _float_renderer(schema, zone, plain, text=float_text)


def _float64_renderer(schema: Schema, zone: dt.tzinfo | None, plain: Render) -> Render:
    return _float_renderer(schema, zone, plain, text=double_text)


_BY_TYPE: Final[Mapping[Type, Callable[[Schema, dt.tzinfo | None, Render], Render]]] = {
    Type.STRUCT: _struct_renderer,
    Type.ARRAY: _array_renderer,
    Type.MAP: _map_renderer,
    Type.FLOAT32: _float32_renderer,
    Type.FLOAT64: _float64_renderer,
}


# -- values by what they are -------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _plain_renderer(zone: dt.tzinfo | None) -> Render:
    def render(value: Any) -> str:
        write = by_class.get(value.__class__)
        return write(value) if write is not None else unusual(value)

    def mapping(value: Mapping[Any, Any]) -> str:
        return "{" + ", ".join([f"{render(name)}={render(member)}" for name, member in value.items()]) + "}"

    def sequence(value: Sequence[Any]) -> str:
        return f"[{', '.join(map(render, value))}]"

    def moment(value: dt.date | dt.time) -> str:
        return _moment_text(value, zone)

    def unusual(value: Any) -> str:
        """Write subclasses and other implementations of Python's interfaces."""
        write = next((write for kind, write in by_kind if isinstance(value, kind)), None)
        if write is None:
            raise DataError(f"A {type(value).__name__} has no text: it is of no type of Kafka Connect's.")
        return write(value)

    by_class: dict[type, Render] = {
        NoneType: lambda _: "null",
        str: str,
        bool: lambda value: "true" if value else "false",
        int: integer_text,
        float: double_text,
        Decimal: str,
        bytes: _base64,
        bytearray: _base64,
        memoryview: _base64,
        dt.date: moment,
        dt.datetime: moment,
        dt.time: moment,
        dict: mapping,
        list: sequence,
    }
    by_kind: tuple[tuple[Any, Render], ...] = (*by_class.items(), (Mapping, mapping), (Sequence, sequence))
    return render


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode("ascii")


def _moment_text(value: dt.date | dt.time, zone: dt.tzinfo | None) -> str:
    """Return the text of java.util.Date: a date is midnight in UTC, a time of day is on 1970-01-01."""
    if isinstance(value, dt.time):
        moment = dt.datetime.combine(dt.date(1970, 1, 1), value, dt.UTC)
    elif isinstance(value, dt.datetime):
        moment = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else instant_in_utc(value)
    else:
        moment = dt.datetime.combine(value, dt.time(), dt.UTC)
    try:
        local = moment if zone is dt.UTC else moment.astimezone(zone)
    except OverflowError as error:
        raise DataError(
            f"{moment} has no text: it is out of the years 1 to 9999 in the zone of the machine."
        ) from error
    year, month, day = calendar_day(local)
    return f"{_DAYS[local.weekday()]} {_MONTHS[month - 1]} {day:02} {local:%H:%M:%S} {local.tzname()} {year}"
