"""Schemas made of documents: what JSON says of its fields, with what the elements of arrays have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from connect.data import Schema
from connect.data.numerals import INT64_MAX, INT64_MIN
from connect.errors import DataError

__all__ = ["DocumentSchemas"]

_Shape: TypeAlias = "str | tuple[str, Any] | None"
"""The shape of a value: a letter, an array or an object with the shapes in it; None for a null."""

_PLAIN: Final[Mapping[str | None, Schema]] = {
    "boolean": Schema.boolean(optional=True),
    "integer": Schema.int64(optional=True),
    "number": Schema.float64(optional=True),
    "text": Schema.string(optional=True),
    None: Schema.string(optional=True),
}
_NAMES: Final[Mapping[type, str | None]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "text",
    type(None): None,
}
_MOST_FIELDS: Final = 1000
"""Fields of the objects of an array, each of which has them all in its struct; an index has as many by default."""
_MOST_SHAPES: Final = 1000


class DocumentSchemas:
    """Makes schemas of documents: one for all that have the same fields in the same order."""

    def __init__(self) -> None:
        self._schemas: dict[_Shape, Schema] = {}

    def fitted(self, document: Mapping[str, Any]) -> tuple[Schema, Any]:
        """Return the schema of a document, and the document as a struct of it.

        Whole numbers are int64, others float64, an array has one type of elements, and a null is an optional text.
        Raises :class:`~connect.errors.DataError` if there is no such schema.
        """
        try:
            shape = _shape(document, "")
            schema = self._schemas.get(shape)
            if schema is None:
                if len(self._schemas) >= _MOST_SHAPES:
                    self._schemas.clear()
                schema = self._schemas[shape] = _schema(shape).as_required()
            return schema, _fitted(document, shape)
        except RecursionError as error:
            raise DataError("The document is nested too deeply to have a schema.") from error


def _shape(value: Any, path: str) -> _Shape:
    kind = type(value)
    if kind in _NAMES:
        if kind is int and not INT64_MIN <= value <= INT64_MAX:
            raise DataError(f"{path} is {value}, which needs more than 64 bits.")
        return _NAMES[kind]
    if isinstance(value, Mapping):
        inner = f"{path}." if path else ""
        return "object", tuple((name, _shape(item, inner + name)) for name, item in value.items())
    return "array", _common([_shape(item, f"{path}[]") for item in value], path)


def _common(shapes: Iterable[_Shape], path: str) -> _Shape:
    """Return what shapes have in common: the fields of all objects, or the type of all others."""
    known = list(dict.fromkeys(shape for shape in shapes if shape is not None))
    if len(known) < 2:
        return known[0] if known else None
    kinds = {_name(shape) for shape in known}
    if kinds == {"integer", "number"}:
        return "number"
    if len(kinds) > 1:
        raise DataError(f"The elements of {path} have different types: {', '.join(sorted(kinds))}.")
    inner: list[Any] = [shape[1] for shape in known if isinstance(shape, tuple)]
    if kinds == {"array"}:
        return "array", _common(inner, f"{path}[]")
    fields: dict[str, list[_Shape]] = {}
    for each in inner:
        for name, shape in each:
            fields.setdefault(name, []).append(shape)
    if len(fields) > _MOST_FIELDS:
        raise DataError(f"The elements of {path} have more than {_MOST_FIELDS} different fields.")
    return "object", tuple((name, _common(each, f"{path}.{name}")) for name, each in fields.items())


def _name(shape: _Shape) -> str:
    return str(shape[0] if isinstance(shape, tuple) else shape)


def _schema(shape: _Shape) -> Schema:
    if not isinstance(shape, tuple):
        return _PLAIN[shape]
    if shape[0] == "array":
        return Schema.array(_schema(shape[1]), optional=True)
    return Schema.struct({name: _schema(each) for name, each in shape[1]}, optional=True)


def _fitted(value: Any, shape: _Shape) -> Any:
    """Return a value as its schema has it: numbers of one type, and each object with all fields of its array's."""
    if value is None:
        return None
    if shape == "number":
        return float(value)
    if not isinstance(shape, tuple):
        return value
    if shape[0] == "array":
        items: Sequence[Any] = value
        return [_fitted(item, shape[1]) for item in items]
    return {name: _fitted(value.get(name), each) for name, each in shape[1]}
