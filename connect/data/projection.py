"""Projection of values from one schema to another, so that records written with an old schema fit a new one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from connect.data import logical
from connect.data.excerpt import excerpt
from connect.data.numerals import single
from connect.data.schema import Schema, Type
from connect.errors import DataError, SchemaError

__all__ = ["project"]

_KINDS: Final[Mapping[Type, type | tuple[type, ...]]] = {
    Type.FLOAT32: (int, float),
    Type.FLOAT64: (int, float),
    Type.ARRAY: (list, tuple),
    Type.MAP: Mapping,
    Type.STRUCT: Mapping,
}
_WIDENING: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def project(source: Schema, value: Any, target: Schema) -> Any:
    """Project a value of the schema ``source`` to the schema ``target``.

    Numbers may become wider. Fields may be dropped, or added with their default (null if they are optional). Null
    becomes the default where the target requires a value. Names and parameters must be equal; versions may differ.

    Raises :class:`~connect.errors.SchemaError` if the schemas are not compatible, and
    :class:`~connect.errors.DataError` if the value does not match its schema.
    """
    try:
        return _projected(source, value, target)
    except RecursionError as error:
        raise DataError("The value, or its schema, is nested too deeply to be projected.") from error


def _projected(source: Schema, value: Any, target: Schema) -> Any:
    _check_compatible(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaError("Writer schema is optional, however, target schema does not provide a default value.")
        if value is None:
            return target.default
    if value is None:
        return value
    _check_kind(source, value, target)
    if target.type is Type.STRUCT:
        return _struct(source, value, target)
    if target.name in logical.LOGICAL_NAMES or target.type.is_primitive:
        return _promoted(source, value, target)
    assert source.value_schema is not None
    assert target.value_schema is not None
    if source.key_schema is None or target.key_schema is None:
        return [_projected(source.value_schema, item, target.value_schema) for item in value]
    keys = [_projected(source.key_schema, key, target.key_schema) for key in value]
    items = [_projected(source.value_schema, item, target.value_schema) for item in value.values()]
    return dict(zip(keys, items, strict=True))


def _check_kind(source: Schema, value: Any, target: Schema) -> None:
    if not isinstance(value, _KINDS.get(target.type, object)):
        raise DataError(f"Cannot project a value of type {type(value).__name__}: {source.type.name} is expected")


@lru_cache(maxsize=1024)
def _check_compatible(source: Schema, target: Schema) -> None:
    if source.type is not target.type and not _widens(source.type, target.type):
        raise SchemaError(f"Schema type mismatch. source type: {source.type.name} and target type: {target.type.name}")
    if source.name != target.name:
        raise SchemaError(
            f"Schema name mismatch. source name: {source.name or 'null'} and target name: {target.name or 'null'}"
        )
    if source.parameters != target.parameters:
        raise SchemaError(
            f"Schema parameters not equal. source parameters: {dict(source.parameters)}"
            f" and target parameters: {dict(target.parameters)}"
        )


def _widens(source: Type, target: Type) -> bool:
    numbers = source in _WIDENING and target in _WIDENING
    return numbers and _WIDENING.index(source) <= _WIDENING.index(target)


def _promoted(source: Schema, value: Any, target: Schema) -> Any:
    if source.type is target.type or target.name in logical.LOGICAL_NAMES:
        return value
    if target.type not in (Type.FLOAT32, Type.FLOAT64):
        return value
    try:
        number = float(value)
        return single(number) if Type.FLOAT32 in (source.type, target.type) else number
    except OverflowError as error:
        raise DataError(f"Cannot project {excerpt(value)}: {source.type.name} is expected") from error


def _struct(source: Schema, value: Mapping[str, Any], target: Schema) -> dict[str, Any]:
    projected: dict[str, Any] = {}
    for field in target.fields:
        name, schema = field.name, field.schema
        written = source.field(name)
        if written is not None:
            found = value.get(name)
            given = written.schema.default if found is None else found
            try:
                projected[name] = _projected(written.schema, given, schema)
            except SchemaError as error:
                raise SchemaError(f"Error projecting {name}: {error}") from error
        elif schema.default is not None or schema.optional:
            projected[name] = schema.default
        else:
            raise SchemaError(f"Required field `{name}` is missing from source schema: {source!r}")
    return projected
