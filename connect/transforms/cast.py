"""Cast: other types for fields, or for the whole key or value."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from connect.config import HIGH, Config, ConfigRuleError, invalid_value, option, validator
from connect.data import Schema, Type
from connect.errors import ConfigError
from connect.transforms.casting import CAST_TARGETS, cast_function
from connect.transforms.field_path import FieldSyntax, FieldTree, parse_field_path
from connect.transforms.key_or_value import Change, ValueTransformation
from connect.transforms.options import field_syntax_version, replace_null_with_default, split_pair
from connect.transforms.struct_change import change_fields

__all__ = ["Cast", "CastConfig"]

_PURPOSE: Final = "cast types"


def _target(key: str, name: str) -> Type:
    try:
        target = Type(name.strip().lower())
    except ValueError as error:
        raise invalid_value(key, name, f"Invalid type found in casting spec: {name.strip()}") from error
    if target not in CAST_TARGETS:
        supported = ", ".join(kind.name for kind in CAST_TARGETS)
        text = f"Cast transformation does not support casting to {target.name}"
        raise ConfigRuleError(f"{text}; supported types are [{supported}]", key)
    return target


def _parse_spec(key: str, items: Collection[str]) -> dict[str | None, Type]:
    """The target types by the fields; ``None`` is the whole value."""
    casts: dict[str | None, Type] = {}
    for item in items:
        parts = split_pair(item)
        if len(parts) > 2:
            raise invalid_value(key, items, f"Invalid rename mapping: {item}")
        casts[parts[0].strip() if len(parts) == 2 else None] = _target(key, parts[-1])
    if None in casts and len(items) > 1:
        whole = "Cast transformations that specify a type to cast the entire value to"
        raise ConfigRuleError(f"{whole} may only specify a single cast in their spec", key)
    return casts


@validator("list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>")
def _cast_spec(key: str, value: Collection[str]) -> None:
    if not value:
        raise ConfigRuleError("Must specify at least one field to cast.", key)
    _parse_spec(key, value)


class CastConfig(Config):
    """What is cast to which type."""

    spec: tuple[str, ...] = option(
        importance=HIGH,
        validator=_cast_spec,
        doc="Fields and the types to cast them to, as field:type; or one type, for the whole key or value. "
        "The types are int8, int16, int32, int64, float32, float64, boolean and string. Bytes can be cast to "
        "string only, which encodes them in base64.",
    )
    replace_null_with_default: bool = replace_null_with_default()
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse paths that are not well formed."""
        for name in _parse_spec("spec", self.spec):
            if name is not None:
                parse_field_path(name, self.field_syntax_version, "spec")
        return []


class Cast(ValueTransformation[CastConfig]):
    """Casts fields, or the whole key or value, to other types. As in Java numbers wrap and are cut off."""

    def __init__(self, config: CastConfig) -> None:
        super().__init__(config)
        casts = _parse_spec("spec", config.spec)
        self._whole = casts.pop(None, None)
        syntax = config.field_syntax_version
        self._fields = FieldTree.of(
            (parse_field_path(name, syntax, "spec"), target) for name, target in casts.items() if name is not None
        )

    def change(self, schema: Schema | None) -> Change:
        """Cast values of a schema."""
        if self._whole is not None:
            return _cast_whole(schema, self._whole)
        defaults = self.config.replace_null_with_default
        return change_fields(schema, self._fields, _cast_field, purpose=_PURPOSE, defaults=defaults)


def _cast_whole(schema: Schema | None, target: Type) -> Change:
    cast = cast_function(schema, target)
    if schema is None:
        return Change(None, cast)
    # As in Java the name and the rest of the schema stay, even those of a logical type it no longer has.
    return Change(schema.replace(type=target, default=_default(schema, cast)), cast)


def _cast_field(schema: Schema | None, target: Type) -> Change:
    cast = cast_function(schema, target)
    if schema is None:
        return Change(None, cast)
    return Change(Schema(target, optional=schema.optional, default=_default(schema, cast)), cast)


def _default(schema: Schema, cast: Callable[[Any], Any]) -> Any:
    return None if schema.default is None else cast(schema.default)
