"""Flatten: moves the fields of nested structs and maps to the top level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from connect.config import MEDIUM, Config, option
from connect.data import Field, Schema, Type
from connect.errors import DataError
from connect.transforms.cast import schemaless_type
from connect.transforms.fields.key_or_value import (
    Change,
    ValueTransformation,
    require_map,
    require_struct_schema,
    type_name,
)

__all__ = ["Flatten", "FlattenConfig"]

_PURPOSE: Final = "flattening"


class FlattenConfig(Config):
    """The delimiter of the names of nested fields."""

    delimiter: str = option(
        default=".",
        importance=MEDIUM,
        doc="Delimiter between the names of the structs and of the field in them.",
    )


class Flatten(ValueTransformation[FlattenConfig]):
    """Puts the fields of nested structs at the top, named by their paths. Arrays stay as they are."""

    def change(self, schema: Schema | None) -> Change:
        """Flatten values of a schema."""
        delimiter = self.config.delimiter
        if schema is None:
            return Change(None, lambda value: _flattened(require_map(value, None, _PURPOSE), delimiter))
        require_struct_schema(schema, _PURPOSE)
        members = list(_members(schema, "", delimiter, optional=schema.optional, default=schema.default))
        flatten = _flattener(schema, delimiter)
        # As in Java, the struct is no longer optional and has no default. Its fields take these over.
        flat = schema.replace(fields=members, optional=False, default=None)
        return Change(flat, lambda value: flatten(require_map(value, schema, _PURPOSE)))


def _joined(prefix: str, name: str, delimiter: str) -> str:
    return f"{prefix}{delimiter}{name}" if prefix else name


def _flattened(value: Mapping[str, Any], delimiter: str) -> dict[str, Any]:
    try:
        return dict(_entries(value, "", delimiter))
    except RecursionError as error:
        raise DataError("The value is nested too deeply to be flattened.") from error


def _entries(value: Mapping[str, Any], prefix: str, delimiter: str) -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        path = _joined(prefix, name, delimiter)
        if isinstance(item, Mapping):
            yield from _entries(item, path, delimiter)
        elif item is None or schemaless_type(item) is not None:
            yield path, item
        else:
            text = f"Flatten transformation was passed a value of type {type_name(item)}"
            raise DataError(f"{text} which is not supported by Connect's data API (for field {path}).")


def _members(
    schema: Schema, prefix: str, delimiter: str, *, optional: bool, default: Mapping[str, Any] | None
) -> Iterator[Field]:
    """Return the fields of the flat struct.

    A field is optional or has a default if it or a parent was optional or had one.
    """
    for field in schema.fields:
        path = _joined(prefix, field.name, delimiter)
        nullable = optional or field.schema.optional
        inherited = default.get(field.name) if default is not None else None
        own = field.schema.default if field.schema.default is not None else inherited
        if field.schema.type is Type.STRUCT:
            yield from _members(field.schema, path, delimiter, optional=nullable, default=own)
        elif field.schema.type is Type.MAP:
            raise DataError(f"Flatten transformation does not support MAP for record with schemas (for field {path}).")
        elif field.schema.type is Type.ARRAY:
            yield Field(path, field.schema, 0)
        else:
            yield Field(path, field.schema.replace(optional=nullable, default=own), 0)


def _flattener(schema: Schema, delimiter: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function that flattens structs of a schema.

    As in Java, a field that is null within a struct that is not null gets its default.
    """
    places = list(_places(schema, (), "", delimiter))

    def flatten(value: Mapping[str, Any]) -> dict[str, Any]:
        parents: dict[tuple[str, ...], Any] = {(): value}
        flat: dict[str, Any] = {}
        for parent, name, path, own in places:
            holder = parents.get(parent)
            item = holder.get(name) if isinstance(holder, Mapping) else None
            if item is None and own is not None and holder is not None:
                item = own.default
            if path is None:
                parents[(*parent, name)] = item
            else:
                flat[path] = item
        return flat

    return flatten


def _places(
    schema: Schema, parent: tuple[str, ...], prefix: str, delimiter: str
) -> Iterator[tuple[tuple[str, ...], str, str | None, Schema | None]]:
    """Return the parent, name and flat name of each field, and its schema if that has a default.

    A struct precedes its fields and has no flat name.
    """
    for field in schema.fields:
        path = _joined(prefix, field.name, delimiter)
        if field.schema.type is Type.STRUCT:
            yield parent, field.name, None, None
            yield from _places(field.schema, (*parent, field.name), path, delimiter)
        else:
            yield parent, field.name, path, field.schema if field.schema.default is not None else None
