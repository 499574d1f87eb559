"""ChangeCase: changes the case of field names, from ``customer_id`` to ``customerId`` for example."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from connect.config import HIGH, MEDIUM, Config, option
from connect.data import Field, Schema, Type
from connect.errors import DataError
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema

__all__ = ["ChangeCase", "ChangeCaseConfig", "changed_case"]

Case: TypeAlias = Literal["LOWER_HYPHEN", "LOWER_UNDERSCORE", "LOWER_CAMEL", "UPPER_CAMEL", "UPPER_UNDERSCORE"]

_PURPOSE: Final = "changing the case of names"
_SEPARATORS: Final = {"LOWER_HYPHEN": "-", "LOWER_UNDERSCORE": "_", "UPPER_UNDERSCORE": "_"}
_CAMEL: Final = re.compile(r"(?!^)(?=[A-Z])")
# As in Java's Guava, letters beyond ASCII have one case.
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)


def changed_case(name: str, given: Case, wanted: Case) -> str:
    """Return a name that is written as ``given`` in the case ``wanted``."""
    if given == wanted:
        return name
    if given in _SEPARATORS and wanted in _SEPARATORS:
        return _respelled(name, given, wanted)
    separator = _SEPARATORS.get(given)
    words = _CAMEL.split(name) if separator is None else name.split(separator)
    if wanted in _SEPARATORS:
        table = _UPPER if wanted == "UPPER_UNDERSCORE" else _LOWER
        return _SEPARATORS[wanted].join(word.translate(table) for word in words)
    first, *rest = words
    first = first.translate(_LOWER) if wanted == "LOWER_CAMEL" else _capitalized(first)
    return "".join([first, *map(_capitalized, rest)])


def _respelled(name: str, given: Case, wanted: Case) -> str:
    """Change the separator, and the letters between upper and lower case alone, as Guava does."""
    changed = name.replace(_SEPARATORS[given], _SEPARATORS[wanted])
    if "UPPER_UNDERSCORE" not in (given, wanted):
        return changed
    return changed.translate(_UPPER if wanted == "UPPER_UNDERSCORE" else _LOWER)


def _capitalized(word: str) -> str:
    return word[:1].translate(_UPPER) + word[1:].translate(_LOWER)


class ChangeCaseConfig(Config):
    """The case of the names as they are, and as they are to be."""

    from_: Case = option(name="from", importance=HIGH, doc="The case of the names as they are.")
    to: Case = option(importance=HIGH, doc="The case that the names get.")
    passthrough_fields: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Fields, at any depth, whose own name is changed while all names within them stay as they are.",
    )


class ChangeCase(ValueTransformation[ChangeCaseConfig]):
    """Changes the case of field names, also in nested structs and in arrays of structs."""

    def __init__(self, config: ChangeCaseConfig) -> None:
        super().__init__(config)
        self._passed = frozenset(config.passthrough_fields)
        self._named = lru_cache(maxsize=1024)(lambda name: changed_case(name, config.from_, config.to))

    def change(self, schema: Schema | None) -> Change:
        """Change names in values of a schema."""
        if schema is None:
            return Change(None, self._untyped_whole)
        return Change(*self._struct(require_struct_schema(schema, _PURPOSE)))

    def _typed(self, schema: Schema) -> tuple[Schema, Callable[[Any], Any] | None]:
        """Return the new schema of a value, and the function that changes it; ``None`` if it stays as it is."""
        if schema.type is Type.STRUCT:
            return self._struct(schema)
        if schema.type is not Type.ARRAY or schema.value_schema is None:
            return schema, None
        items, change = self._typed(schema.value_schema)
        if change is None:
            return schema, None
        return schema.replace(value_schema=items, default=None), lambda value: [
            None if item is None else change(item) for item in value
        ]

    def _struct(self, schema: Schema) -> tuple[Schema, Callable[[Any], Any]]:
        members, steps = [], []
        for field in schema.fields:
            kept = (field.schema, None) if field.name in self._passed else self._typed(field.schema)
            members.append(Field(self._named(field.name), kept[0], field.index))
            steps.append((field.name, members[-1].name, kept[1]))
        _refuse_clash([name for _, name, _ in steps])

        def change(value: Any) -> dict[str, Any]:
            given = require_map(value, schema, _PURPOSE)
            return {
                new: item if (item := given.get(old)) is None or inner is None else inner(item)
                for old, new, inner in steps
            }

        return schema.replace(fields=members, default=None), change

    def _untyped_whole(self, value: Any) -> dict[Any, Any]:
        try:
            return self._untyped_map(require_map(value, None, _PURPOSE))
        except RecursionError as error:
            raise DataError(f"The {self.side.name} is nested too deep for its names to be changed") from error

    def _untyped(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self._untyped_map(value)
        return [self._untyped(item) for item in value] if isinstance(value, (list, tuple)) else value

    def _untyped_map(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        names = {name: self._named(name) if isinstance(name, str) else name for name in value}
        _refuse_clash(list(names.values()))
        return {names[name]: item if name in self._passed else self._untyped(item) for name, item in value.items()}


def _refuse_clash(names: list[Any]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Two fields would be called {twice}: rename one of them first")
