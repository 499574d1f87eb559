"""Changes of some fields of structs and maps that leave the other fields as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from connect.data import Field, Schema, Type
from connect.errors import DataError
from connect.transforms.fields.field_path import FieldTree
from connect.transforms.fields.key_or_value import Change, require_map, require_struct_schema

__all__ = ["Defaults", "change_fields", "defaults_of", "with_defaults"]

T = TypeVar("T")
Defaults = Sequence[tuple[str, Schema]]
Updates = Sequence[tuple[str, Callable[[Any], Any]]]


def change_fields(
    schema: Schema | None,
    tree: FieldTree[T],
    leaf: Callable[[Schema | None, T], Change],
    *,
    purpose: str,
    defaults: bool,
) -> Change:
    """Return the change of the non-null fields in ``tree``. ``leaf`` returns the change of a field, given its schema.

    A schema may lack the fields. A map without a schema gets the fields it lacks, unless a parent is missing.
    ``defaults`` decides whether nulls are first replaced with the default of their schema.
    """
    if schema is None:
        edits = _Edits([(name, leaf(None, payload).value) for name, payload in tree.leaves.items()])
        for name, branch in tree.branches.items():
            inner = change_fields(None, branch, leaf, purpose=purpose, defaults=False)
            edits.branches.append((name, inner.value))
        return Change(None, _updater(None, edits, purpose), _column_updater(edits))
    require_struct_schema(schema, purpose)
    changes = _field_changes(schema, tree, leaf, purpose=purpose, defaults=defaults)
    edits = _Edits(
        [(name, changes[name].value) for name in tree.leaves if name in changes],
        [(name, changes[name].value) for name in tree.branches if name in changes and name not in tree.leaves],
    )
    # The old default is not valid for the new fields, so it is changed like any other value.
    default = None if schema.default is None else _updater(schema, edits, purpose)(schema.default)
    edits.defaults = defaults_of(schema) if defaults else []
    new_schema = schema.replace(fields=_changed_fields(schema, changes), default=default)
    return Change(new_schema, _updater(schema, edits, purpose), _column_updater(edits))


@dataclass(slots=True)
class _Edits:
    """The changes within one struct: to its own fields and to nested structs."""

    leaves: Updates
    branches: list[tuple[str, Callable[[Any], Any]]] = field(default_factory=list)
    defaults: Defaults = ()


def _field_changes(
    schema: Schema,
    tree: FieldTree[T],
    leaf: Callable[[Schema | None, T], Change],
    *,
    purpose: str,
    defaults: bool,
) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for member in schema.fields:
        branch = tree.branches.get(member.name)
        if member.name in tree.leaves:
            changes[member.name] = leaf(member.schema, tree.leaves[member.name])
        elif branch is not None and member.schema.type is Type.STRUCT:
            changes[member.name] = change_fields(member.schema, branch, leaf, purpose=purpose, defaults=defaults)
    return changes


def _changed_fields(schema: Schema, changes: Mapping[str, Change]) -> list[Field]:
    fields = []
    for member in schema.fields:
        change = changes.get(member.name)
        new = member.schema if change is None or change.schema is None else change.schema
        fields.append(Field(member.name, new, member.index))
    return fields


def _updater(schema: Schema | None, edits: _Edits, purpose: str) -> Callable[[Any], dict[str, Any]]:
    leaves, branches, defaults = edits.leaves, edits.branches, edits.defaults

    def update(value: Any) -> dict[str, Any]:
        new = value.copy() if type(value) is dict else dict(require_map(value, schema, purpose))
        for name, own in defaults:
            if new.get(name) is None:
                new[name] = own.default
        name = ""
        try:
            for name, change in leaves:
                item = new.get(name)
                new[name] = None if item is None else change(item)
            for name, change in branches:
                if isinstance(new.get(name), Mapping):
                    new[name] = change(new[name])
        except DataError as error:
            raise type(error)(f"{error} (field {name})") from error
        return new

    return update


def _column_updater(edits: _Edits) -> Callable[[Sequence[Any]], list[dict[str, Any]]] | None:
    """Return a function that updates many structs at once if only their own fields change; it fails for others."""
    if edits.branches or edits.defaults:
        return None
    leaves = edits.leaves

    def update(values: Sequence[Any]) -> list[dict[str, Any]]:
        new = [{**value} for value in values]
        for name, change in leaves:
            for value in new:
                item = value.get(name)
                value[name] = None if item is None else change(item)
        return new

    return update


def defaults_of(schema: Schema) -> Defaults:
    """Return the fields of a struct schema that have a default, with their schemas, which copy it at each use."""
    return [(field.name, field.schema) for field in schema.fields if field.schema.default is not None]


def with_defaults(value: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    """Return a copy of a struct with nulls replaced by ``defaults``."""
    new = value.copy() if type(value) is dict else dict(value)
    for name, own in defaults:
        if new.get(name) is None:
            new[name] = own.default
    return new
