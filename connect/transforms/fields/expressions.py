"""Expressions about records in the Common Expression Language.

An expression can only read the record and compute: it always ends, has no side effects and no access to Python. Its
variables are ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp`` (of the
type timestamp) and ``headers``, a map of the last value under each key.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from connect.config import ConfigRuleError
from connect.data import Record, Schema, SinkRecord, Type
from connect.data.excerpt import excerpt
from connect.data.logical import EPOCH, timestamp_from_milliseconds
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.errors import DataError
from connect.transforms.fields.conditions import MissingFieldError
from connect.transforms.fields.options import optional_library

__all__ = ["Expression"]

_STRING: Final = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
# The names bound by a macro, as in value.tags.exists(tag, tag == 'a').
_BOUND: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,")


class Expression:
    """A compiled expression. Raises :class:`~connect.errors.ConfigError` about ``key`` if it is malformed.

    Requires the extra ``expressions``.
    """

    def __init__(self, text: str, key: str) -> None:
        self.text = text
        library = optional_library("cel", "expressions", key)
        try:
            self._program = library.compile(text)
        except ValueError as error:
            raise ConfigRuleError(f"Invalid value {text} for configuration {key}: {error}", key) from error
        used = set(self._program.variables())
        unknown = used - _READERS.keys() - set(_BOUND.findall(_STRING.sub("''", text)))
        if unknown:
            known = ", ".join(_READERS)
            reason = f"unknown variable {min(unknown)}; use one of {known}"
            raise ConfigRuleError(f"Invalid value {text} for configuration {key}: {reason}", key)
        self._fields = {side: _fields_of(text, side) for side in ("key", "value")}
        self._readers = {name: read for name, read in _READERS.items() if name in used}

    def evaluate(self, record: Record) -> Any:
        """Return the value of the expression for a record, as a Python value.

        Raises :class:`MissingFieldError` if a field that it needs is missing, or null and used in a computation.
        """
        try:
            variables = {name: read(record, self._fields.get(name)) for name, read in self._readers.items()}
        except (ValueError, OverflowError, RecursionError) as error:
            raise DataError(f"Expression {self.text} cannot be given the record: {error}") from error
        try:
            return _in_order(self._program.execute(variables))
        except KeyError as error:
            raise MissingFieldError(f"Expression {self.text}: there is no field {error}") from error
        except Exception as error:
            kind = MissingFieldError if _has_null(variables) and isinstance(error, TypeError) else DataError
            raise kind(f"Expression {self.text}: {error}") from error

    def decide(self, record: Record) -> bool:
        """Return the result of the expression, which must be true or false."""
        answer = self.evaluate(record)
        if not isinstance(answer, bool):
            raise DataError(f"Expression {self.text} must be true or false, but is {excerpt(answer)}")
        return answer


def _fields_of(text: str, side: str) -> frozenset[str] | None:
    """Return the fields of the key or value that the expression accesses, or ``None`` if it may access any.

    The input of an expression is copied for it, so only the accessed fields are passed.
    """
    blanked = _STRING.sub("''", text)
    whole = re.findall(rf"(?<![\w.]){side}\b", blanked)
    named = re.findall(rf"(?<![\w.]){side}\s*\.\s*([A-Za-z_]\w*)(?!\w|\s*\()", blanked)
    return frozenset(named) if len(named) == len(whole) else None


def _has_null(variables: Mapping[str, Any]) -> bool:
    return any(item is None or (isinstance(item, Mapping) and None in item.values()) for item in variables.values())


def _data(data: Any, schema: Schema | None, fields: frozenset[str] | None) -> Any:
    if fields is None or not isinstance(data, Mapping):
        return _exposed(data)
    known = schema.field_names if schema is not None and schema.type is Type.STRUCT else data
    return {name: _exposed(data.get(name)) for name in fields if name in known}


def _exposed(value: Any) -> Any:
    """Return a value in the types of the language."""
    convert = _EXPOSURES.get(type(value))
    return value if convert is None else convert(value)


def _in_order(value: Any) -> Any:
    """Return a result whose maps have a fixed order.

    The language defines none, but the bytes of equal keys must not differ.
    """
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value, key=repr)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def _exposed_int(value: int) -> float | int:
    return value if INT64_MIN <= value <= INT64_MAX else float(value)


_EXPOSURES: Final[Mapping[type, Callable[[Any], Any]]] = {
    dict: lambda value: {name: _exposed(item) for name, item in value.items()},
    list: lambda value: [_exposed(item) for item in value],
    int: _exposed_int,
    Decimal: float,
    dt.date: lambda value: dt.datetime.combine(value, dt.time(), dt.UTC),
    dt.time: lambda value: dt.datetime.combine(EPOCH, value, dt.UTC) - EPOCH,
}
_READERS: Final[Mapping[str, Callable[[Record, frozenset[str] | None], Any]]] = {
    "key": lambda record, fields: _data(record.key, record.key_schema, fields),
    "value": lambda record, fields: _data(record.value, record.value_schema, fields),
    "topic": lambda record, _: record.topic,
    "partition": lambda record, _: record.partition,
    "offset": lambda record, _: record.offset if isinstance(record, SinkRecord) else None,
    "timestamp": lambda record, _: None if record.timestamp is None else timestamp_from_milliseconds(record.timestamp),
    "headers": lambda record, _: {header.key: _exposed(header.value) for header in record.headers},
}
