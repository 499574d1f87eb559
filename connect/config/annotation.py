"""What the annotation of an option says: its type, whether it may be ``None``, its fixed values."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from connect.config.password import Password
from connect.config.types import ConfigType, ParsedValue
from connect.config.validators import Validator, list_values, one_of

__all__ = ["Annotation", "read_annotation"]

_SCALARS: Final[Mapping[Any, ConfigType]] = {
    str: ConfigType.STRING,
    bool: ConfigType.BOOLEAN,
    int: ConfigType.INT,
    float: ConfigType.DOUBLE,
    Password: ConfigType.PASSWORD,
}


def _unchanged(value: ParsedValue) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Annotation:
    """The meaning of an annotation. ``load`` makes what the attribute holds of a parsed value."""

    type: ConfigType
    load: Callable[[Any], Any] = _unchanged
    validator: Validator | None = None
    nullable: bool = False


def read_annotation(hint: Any, *, ignore_case: bool = False) -> Annotation:
    """Return what ``hint`` means; one that no property can be parsed to is a ``TypeError``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType) and len(arguments) == 2 and types.NoneType in arguments:
        present = next(argument for argument in arguments if argument is not types.NoneType)
        return replace(read_annotation(present, ignore_case=ignore_case), nullable=True)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return _read_list(arguments[0], ignore_case)
    if members := _fixed_values(hint):
        load = _loader(members, ignore_case)
        return Annotation(ConfigType.STRING, load, one_of(*members, ignore_case=ignore_case))
    if origin is Annotated and isinstance(arguments[1], ConfigType):
        return Annotation(arguments[1])
    if hint in _SCALARS:
        return Annotation(_SCALARS[hint])
    raise TypeError(
        f"{hint!r} is not the type of an option. Use str, int, Long, Short, float, bool, Password, "
        "PluginName, a Literal of strings, a StrEnum, tuple[str, ...] for lists, or one with '| None'"
    )


def _read_list(item_hint: Any, ignore_case: bool) -> Annotation:
    if item_hint is str:
        return Annotation(ConfigType.LIST)
    members = _fixed_values(item_hint)
    if not members:
        raise TypeError(f"The items of a list are str, a Literal of strings or a StrEnum, not {item_hint!r}")
    load = _loader(members, ignore_case)
    rule = list_values(*members, ignore_case=ignore_case)
    return Annotation(ConfigType.LIST, lambda values: tuple(load(value) for value in values), rule)


def _fixed_values(hint: Any) -> Mapping[str, Any]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {member.value: member for member in hint}
    if get_origin(hint) is Literal and all(isinstance(value, str) for value in get_args(hint)):
        return {value: value for value in get_args(hint)}
    return {}


def _loader(members: Mapping[str, Any], ignore_case: bool) -> Callable[[str], Any]:
    if not ignore_case:
        return members.__getitem__
    by_upper = {value.upper(): member for value, member in members.items()}
    return lambda value: by_upper[value.upper()]
