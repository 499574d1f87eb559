"""ReplaceField: drops and renames fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from connect.config import MEDIUM, Config, option, unique_list
from connect.data import Field, Schema, Type
from connect.errors import ConfigError
from connect.transforms.fields.field_path import FieldSyntax, FieldTree, parse_field_path
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema
from connect.transforms.fields.options import field_syntax_version, parse_pairs, rename_pairs, replace_null_with_default
from connect.transforms.fields.struct_change import defaults_of

__all__ = ["ReplaceField", "ReplaceFieldConfig", "Selection"]

_PURPOSE: Final = "field replacement"


class ReplaceFieldConfig(Config):
    """The fields to keep, and their new names."""

    old_keys = MappingProxyType({"blacklist": "exclude", "whitelist": "include"})

    exclude: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=unique_list,
        doc="Fields to drop, even if include names them, too.",
    )
    include: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=unique_list,
        doc="Fields to keep. If empty, all fields are kept except those that exclude names.",
    )
    renames: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=rename_pairs, doc="Fields to rename, as old:new."
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse malformed paths."""
        for key, paths in (("exclude", self.exclude), ("include", self.include), ("renames", self.renamed)):
            for path in paths:
                parse_field_path(path, self.field_syntax_version, key)
        return []

    def warnings(self) -> Iterable[str]:
        """Tell of a transformation that lets every field through."""
        if not (self.exclude or self.include or self.renames):
            yield "ReplaceField changes nothing: set at least one of exclude, include and renames."

    @property
    def renamed(self) -> Mapping[str, str]:
        """The new names by old name."""
        return parse_pairs(self.renames)

    def selection(self) -> Selection:
        """Return the three options, combined."""

        def tree(paths: Iterable[tuple[str, str]]) -> FieldTree[str]:
            syntax = self.field_syntax_version
            return FieldTree.of((parse_field_path(path, syntax), new) for path, new in paths)

        include = tree((path, "") for path in self.include) if self.include else None
        return Selection(tree((path, "") for path in self.exclude), include, tree(self.renamed.items()))


@dataclass(frozen=True, slots=True)
class Selection:
    """The fields of a struct to keep, and their names. Without ``include``, all but the excluded fields are kept."""

    exclude: FieldTree[str]
    include: FieldTree[str] | None
    renames: FieldTree[str]

    def keeps(self, name: str) -> bool:
        """Return whether a field is kept, at least in part."""
        if name in self.exclude.leaves:
            return False
        return self.include is None or name in self.include.leaves or name in self.include.branches

    def name(self, name: str) -> str:
        """Return the new name of a field."""
        return self.renames.leaves.get(name, name)

    def inside(self, name: str) -> Selection | None:
        """Return the selection within the field, or ``None`` if it is kept unchanged."""
        exclude, renames = self.exclude.branches.get(name), self.renames.branches.get(name)
        narrow = self.include is not None and name not in self.include.leaves
        include = self.include.branches.get(name) if self.include is not None and narrow else None
        if exclude is None and renames is None and include is None:
            return None
        return Selection(exclude or FieldTree(), include, renames or FieldTree())

    def inner_names(self) -> set[str]:
        """Return the fields within which something may be selected."""
        trees = (self.exclude, self.include, self.renames)
        return {name for tree in trees if tree is not None for name in tree.branches}


class ReplaceField(ValueTransformation[ReplaceFieldConfig]):
    """Keeps some fields, drops the others, and renames fields."""

    def __init__(self, config: ReplaceFieldConfig) -> None:
        super().__init__(config)
        self._selection = config.selection()

    def change(self, schema: Schema | None) -> Change:
        """Replace fields in values of a schema."""
        defaults = self.config.replace_null_with_default
        return select_fields(schema, self._selection, purpose=_PURPOSE, defaults=defaults)


def select_fields(schema: Schema | None, selection: Selection, *, purpose: str, defaults: bool) -> Change:
    """Return the change that keeps the selected fields."""
    if schema is None:
        return Change(None, _map_selector(selection, purpose))
    require_struct_schema(schema, purpose)
    inner: dict[str, Callable[[Any], Any]] = {}
    members: list[Field] = []
    for field in schema.fields:
        if not selection.keeps(field.name):
            continue
        deeper = selection.inside(field.name)
        kept = field.schema
        if deeper is not None and kept.type is Type.STRUCT:
            change = select_fields(kept, deeper, purpose=purpose, defaults=defaults)
            inner[field.name] = change.value
            kept = (change.schema or kept).replace(optional=kept.optional)
        members.append(Field(selection.name(field.name), kept, field.index))
    # As in Java, the new struct is not optional and has no default, even if the old one was or had.
    new_schema = schema.replace(fields=members, optional=False, default=None)
    return Change(new_schema, _struct_selector(schema, selection, inner, purpose=purpose, defaults=defaults))


def _struct_selector(
    schema: Schema,
    selection: Selection,
    inner: Mapping[str, Callable[[Any], Any]],
    *,
    purpose: str,
    defaults: bool,
) -> Callable[[Any], dict[str, Any]]:
    """Return the function that selects fields of structs, in the order of their schema."""
    dropped = [field.name for field in schema.fields if not selection.keeps(field.name)]
    renames = [
        (field.name, selection.name(field.name))
        for field in schema.fields
        if selection.keeps(field.name) and selection.name(field.name) != field.name
    ]
    # Renames may swap names, so a field must not overwrite another that has yet to be renamed.
    swapped = bool({old for old, _ in renames} & {name for _, name in renames})
    filled = defaults_of(schema) if defaults else []
    changes = list(inner.items())

    def select(value: Any) -> dict[str, Any]:
        new = value.copy() if type(value) is dict else dict(require_map(value, schema, purpose))
        for name, own in filled:
            if new.get(name) is None:
                new[name] = own.default
        for name, change in changes:
            if new.get(name) is not None:
                new[name] = change(new[name])
        for name in dropped:
            new.pop(name, None)
        if swapped:
            taken = [(name, new.pop(old)) for old, name in renames if old in new]
            new.update(taken)
            return new
        for old, name in renames:
            if old in new:
                new[name] = new.pop(old)
        return new

    return select


def _map_selector(selection: Selection, purpose: str) -> Callable[[Any], dict[str, Any]]:
    inner = {
        name: _map_selector(deeper, purpose)
        for name in selection.inner_names()
        if selection.keeps(name) and (deeper := selection.inside(name)) is not None
    }
    pick = _picker(selection)

    def select(value: Any) -> dict[str, Any]:
        given = require_map(value, None, purpose)
        new = pick(given)
        for name, change in inner.items():
            if isinstance(given.get(name), Mapping):
                new[selection.name(name)] = change(given[name])
        return new

    return select


def _picker(selection: Selection) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function that selects fields of a map, in the order of the map."""
    dropped, renames = selection.exclude.leaves, selection.renames.leaves
    if selection.include is None:
        return lambda given: {renames.get(name, name): item for name, item in given.items() if name not in dropped}
    kept = (selection.include.leaves.keys() | selection.include.branches.keys()) - dropped.keys()
    return lambda given: {renames.get(name, name): item for name, item in given.items() if name in kept}
