"""Reads the options that a config class declares."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, get_origin, get_type_hints

from connect.config.annotation import Annotation, read_annotation
from connect.config.key import ConfigKey
from connect.config.option import REQUIRED, Option
from connect.config.parsing import parse_value
from connect.config.types import ParsedValue
from connect.config.validators import Validator, all_of
from connect.errors import ConfigError

__all__ = ["Attribute", "declared_attributes"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a config class, the key it stands for, and how its value is made of the parsed one."""

    name: str
    key: ConfigKey
    annotation: Annotation

    def load(self, value: ParsedValue) -> Any:
        """Return what the attribute holds when its key is parsed to ``value``."""
        return None if value is None else self.annotation.load(value)


def declared_attributes(cls: type) -> tuple[Attribute, ...]:
    """Return the options of ``cls`` in declared order, inherited ones first; a mistake is a ``TypeError``."""
    hints = _type_hints(cls)
    attributes: list[Attribute] = []
    positions: Counter[str | None] = Counter()
    for name, option in _declared_options(cls, hints).items():
        annotation = read_annotation(hints[name], ignore_case=option.ignore_case)
        positions[option.group] += 1
        attributes.append(Attribute(name, _config_key(name, option, annotation, positions[option.group]), annotation))
    _refuse_bad_names(cls, attributes)
    return tuple(attributes)


def _type_hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}; annotate options with names of the module's top level") from error


def _declared_options(cls: type, hints: dict[str, Any]) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for base in reversed(cls.__mro__):
        annotated = [name for name in inspect.get_annotations(base) if get_origin(hints[name]) is not ClassVar]
        named = {name for name, value in vars(base).items() if isinstance(value, Option)}
        for name in annotated:
            value = vars(base).get(name)
            if isinstance(value, Option):
                options[name] = value
            elif not name.startswith("_") and hints[name] is not ClassVar:
                raise TypeError(f"{cls.__name__}.{name}: declare it with option(...), or make it a ClassVar")
        if unannotated := named.difference(annotated):
            raise TypeError(f"{cls.__name__}.{min(unannotated)}: annotate the option with its type")
    return options


def _config_key(name: str, option: Option, annotation: Annotation, position: int) -> ConfigKey:
    key = option.name or name.replace("_", ".")
    order = position if option.group is not None else -1
    declared = ConfigKey(
        name=key,
        type=annotation.type,
        importance=option.importance,
        documentation=option.doc,
        required=option.default is REQUIRED,
        display_name=option.display_name or key,
        default=None if option.default is REQUIRED else parse_value(key, option.default, annotation.type),
        nullable=annotation.nullable,
        validator=_both(annotation.validator, option.validator),
        group=option.group,
        order_in_group=order if option.order is None else option.order,
        width=option.width,
        dependents=option.dependents,
        recommender=option.recommender,
        visible=option.visible,
        internal=option.internal,
    )
    _refuse_bad_default(name, declared)
    return declared


def _both(first: Validator | None, second: Validator | None) -> Validator | None:
    return all_of(first, second) if first and second else first or second


def _refuse_bad_default(name: str, key: ConfigKey) -> None:
    if key.required:
        return
    if key.default is None and not key.nullable:
        raise TypeError(f"{name}: the default is None, so annotate the option with '| None'")
    try:
        key.ensure_valid(key.default)
    except ConfigError as error:
        raise TypeError(f"{name}: its own validator refuses the default: {error}") from error


def _refuse_bad_names(cls: type, attributes: list[Attribute]) -> None:
    keys = Counter(attribute.key.name for attribute in attributes)
    for attribute in attributes:
        name, key = f"{cls.__name__}.{attribute.name}", attribute.key
        if _hides_a_method(cls, attribute.name):
            raise TypeError(f"{name} hides a method; rename the attribute and keep the key with name={key.name!r}")
        if keys[key.name] > 1:
            raise TypeError(f"{name}: another attribute has the key {key.name!r} already")
        if unknown := [dependent for dependent in key.dependents if dependent not in keys]:
            raise TypeError(f"{name}: {unknown[0]} is referred in the dependents, but not defined")


def _hides_a_method(cls: type, name: str) -> bool:
    return any(not isinstance(vars(base)[name], Option) for base in cls.__mro__ if name in vars(base))
