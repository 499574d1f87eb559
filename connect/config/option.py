"""Options of config classes: how they are declared, what their annotations mean, and which keys they define."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from connect.config.parsing import parse_value
from connect.config.password import HIDDEN, Password
from connect.config.types import ConfigType, ParsedValue
from connect.config.validators import Validator, all_of, list_values, one_of
from connect.errors import ConfigError

__all__ = [
    "HIGH",
    "LOW",
    "MEDIUM",
    "REQUIRED",
    "Annotation",
    "Attribute",
    "ConfigKey",
    "Importance",
    "Option",
    "Recommender",
    "RefusedOptionError",
    "Visibility",
    "Width",
    "declared_attributes",
    "embed",
    "option",
    "read_annotation",
]

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
    """The meaning of an annotation. ``load`` converts a parsed value to the value of the attribute."""

    type: ConfigType
    load: Callable[[Any], Any] = _unchanged
    validator: Validator | None = None
    nullable: bool = False


def read_annotation(hint: Any, *, ignore_case: bool = False) -> Annotation:
    """Return the meaning of ``hint``; raise ``TypeError`` if it is not a type for options."""
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


T = TypeVar("T")

Recommender: TypeAlias = Callable[[Mapping[str, ParsedValue]], Iterable[ParsedValue]]
"""Returns the values to offer, given the parsed values by key. A value that could not be parsed is ``None``."""

Visibility: TypeAlias = Callable[[Mapping[str, ParsedValue]], bool]
"""Returns whether the option has an effect, given the parsed values by key."""


class Importance(StrEnum):
    """The importance of an option to users."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW


class Width(StrEnum):
    """The width of an input field for an option."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


REQUIRED: Final[Any] = object()


class RefusedOptionError(Exception):
    """A check read an option whose own value was refused. ``key`` is the option's."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} has no valid value")
        self.key = key


@dataclass(frozen=True, eq=False, kw_only=True)
class Option:
    """An option as declared in a config class. ``ConfigKey`` adds its type and name."""

    importance: Importance
    doc: str
    default: Any = REQUIRED
    name: str | None = None
    validator: Validator | None = None
    ignore_case: bool = False
    group: str | None = None
    order: int | None = None
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    visible: Visibility | None = None
    internal: bool = False

    def __get__(self, config: object, owner: Any) -> Option:
        # The values of a config are in its __dict__, which comes first: here only a missing one is asked for.
        if config is None:
            return self
        raise RefusedOptionError(next(each.key.name for each in owner._attributes if getattr(owner, each.name) is self))


def option(
    *,
    default: T = REQUIRED,
    importance: Importance,
    doc: str,
    name: str | None = None,
    validator: Validator | None = None,
    ignore_case: bool = False,
    group: str | None = None,
    order: int | None = None,
    width: Width = Width.NONE,
    display_name: str | None = None,
    dependents: Iterable[str] = (),
    recommender: Recommender | None = None,
    visible: Visibility | None = None,
    internal: bool = False,
) -> T:
    """Declare an option of a ``Config`` class; its annotation is its type.

    default: the value when the key is absent; without it the key is required.
    importance: ``HIGH``, ``MEDIUM`` or ``LOW``.
    doc: the meaning of the option, for the reference and the REST API.
    name: the key; by default the name of the attribute with dots for underscores.
    validator: the rule for its value. It is not called for ``None`` where the annotation allows that.
    ignore_case: accept the fixed values of the annotation in upper and lower case.
    group, order, width, display_name: the place and form in a user interface. By default the order in a group is
        that of declaration, and the display name is the key.
    dependents: keys whose meaning depends on this one.
    recommender: the values to offer, given the parsed values by key.
    visible: whether the option has an effect, given the parsed values by key.
    internal: leave the option out of the reference.
    """
    _refuse_plain_function(validator)
    declared: Any = Option(
        default=default,
        importance=importance,
        doc=doc,
        name=name,
        validator=validator,
        ignore_case=ignore_case,
        group=group,
        order=order,
        width=width,
        display_name=display_name,
        dependents=tuple(dependents),
        recommender=recommender,
        visible=visible,
        internal=internal,
    )
    # The checker is told the type of the attribute; the config class reads the declaration and stores values.
    return declared  # type: ignore[no-any-return]


def _refuse_plain_function(rule: object) -> None:
    if rule is not None and not isinstance(rule, Validator):
        name = getattr(rule, "__name__", repr(rule))
        raise TypeError(
            f"validator={name} does not say what it allows: decorate the function with "
            '@validator and a description for the reference, such as @validator("absolute path")'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """The definition of one key. ``default`` is meaningless if the key is ``required``."""

    name: str
    type: ConfigType
    importance: Importance
    documentation: str
    required: bool
    display_name: str
    default: ParsedValue = None
    nullable: bool = False
    validator: Validator | None = None
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None
    visible: Visibility | None = None
    internal: bool = False

    def ensure_valid(self, value: ParsedValue, *, secret: bool = False) -> None:
        """Raise ``ConfigError`` if the validator refuses ``value``, which may be ``None`` if nullable.

        The validator of a password receives its text. Errors about a secret show the rule instead of the reason.
        """
        if self.validator is None or (value is None and self.nullable):
            return
        secret = secret or isinstance(value, Password)
        try:
            self.validator(self.name, value.value if isinstance(value, Password) else value)
        except ConfigError:
            if secret and value is not None:
                raise ConfigError(self.name, HIDDEN, f"Value must be: {self.validator}") from None
            raise


def embed(keys: Iterable[ConfigKey], *, prefix: str, group: str, first_order: int = 0) -> tuple[ConfigKey, ...]:
    """Return ``keys`` as they appear below ``prefix`` in the configuration of their owner.

    They are put in ``group`` and numbered from ``first_order`` in the order in which Kafka shows them: by their own
    groups and orders, required ones first, then by importance and name.
    """
    children = list(keys)
    groups = [None, *dict.fromkeys(key.group for key in children if key.group is not None)]
    importances = list(Importance)

    def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
        importance = importances.index(key.importance)
        return groups.index(key.group), key.order_in_group, not key.required, importance, key.name

    return tuple(
        replace(
            _below(prefix, key),
            display_name=key.display_name,
            group=group if key.group is None else f"{group}: {key.group}",
            order_in_group=first_order + position,
        )
        for position, key in enumerate(sorted(children, key=rank))
    )


def _below(prefix: str, key: ConfigKey) -> ConfigKey:
    """Return the key's name below ``prefix``."""
    return replace(
        key,
        name=prefix + key.name,
        display_name=prefix + key.name if key.display_name == key.name else key.display_name,
        dependents=tuple(prefix + dependent for dependent in key.dependents),
        recommender=key.recommender and _recommender_below(prefix, key.recommender),
        visible=key.visible and _visibility_below(prefix, key.visible),
    )


def _recommender_below(prefix: str, recommender: Recommender) -> Recommender:
    return lambda values: recommender(_values_below(prefix, values))


def _visibility_below(prefix: str, visible: Visibility) -> Visibility:
    return lambda values: visible(_values_below(prefix, values))


def _values_below(prefix: str, values: Mapping[str, ParsedValue]) -> Mapping[str, ParsedValue]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a config class with its key and the meaning of its annotation."""

    name: str
    key: ConfigKey
    annotation: Annotation

    def load(self, value: ParsedValue) -> Any:
        """Return the value of the attribute for the parsed ``value`` of its key."""
        return None if value is None else self.annotation.load(value)


def declared_attributes(cls: type, prefix: str = "") -> tuple[Attribute, ...]:
    """Return the options of ``cls`` in declared order, inherited ones first; raise ``TypeError`` for a mistake.

    All their keys begin with ``prefix``.
    """
    hints = _type_hints(cls)
    attributes: list[Attribute] = []
    positions: Counter[str | None] = Counter()
    for name, option in _declared_options(cls, hints).items():
        annotation = read_annotation(hints[name], ignore_case=option.ignore_case)
        positions[option.group] += 1
        key = _config_key(name, option, annotation, positions[option.group], prefix)
        attributes.append(Attribute(name, key, annotation))
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
                raise TypeError(
                    f"{cls.__name__}.{name} has an annotation but is no option: declare it with option(...), or make "
                    "it a ClassVar"
                )
        if unannotated := named.difference(annotated):
            raise TypeError(f"{cls.__name__}.{min(unannotated)}: annotate the option with its type")
    return options


def _config_key(name: str, option: Option, annotation: Annotation, position: int, prefix: str) -> ConfigKey:
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
    return _below(prefix, declared) if prefix else declared


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
            raise TypeError(f"{name}: another attribute already has the key {key.name!r}; set another one with name=")
        if unknown := [dependent for dependent in key.dependents if dependent not in keys]:
            raise TypeError(f"{name}: its dependent {unknown[0]!r} is not the key of an option; correct it")


def _hides_a_method(cls: type, name: str) -> bool:
    return any(not isinstance(vars(base)[name], Option) for base in cls.__mro__ if name in vars(base))
