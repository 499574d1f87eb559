"""What a config class says about each of its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from connect.config.types import ParsedValue
from connect.config.validators import Validator

__all__ = [
    "HIGH",
    "LOW",
    "MEDIUM",
    "REQUIRED",
    "Importance",
    "Option",
    "Recommender",
    "RefusedOptionError",
    "Visibility",
    "Width",
    "option",
]

T = TypeVar("T")

Recommender: TypeAlias = Callable[[Mapping[str, ParsedValue]], Iterable[ParsedValue]]
"""Given the parsed values by key, gives the values to offer. A value that could not be parsed is ``None``."""

Visibility: TypeAlias = Callable[[Mapping[str, ParsedValue]], bool]
"""Given the parsed values by key, says whether the option matters at all."""


class Importance(StrEnum):
    """How likely it is that a user has to think about an option."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW


class Width(StrEnum):
    """How wide an input field for an option should be."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


REQUIRED: Final[Any] = object()


class RefusedOptionError(Exception):
    """An option was read of a config that is still being checked, and its own value was refused."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Option:
    """One option of a config class as it is declared. ``ConfigKey`` has its type and name as well."""

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

    def __get__(self, config: object, owner: type) -> Option:
        # The values of a config are in its __dict__, which comes first: here only a missing one is asked for.
        if config is None:
            return self
        raise RefusedOptionError


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
    doc: what the option means, for the reference and the REST API.
    name: the key; by default the name of the attribute with dots for underscores.
    validator: the rule its value must keep. It is not asked about ``None`` where the annotation allows that.
    ignore_case: of an option with fixed values, take them in any case.
    group, order, width, display_name: where and how a user interface shows it. The order in a group is that
        of declaration, the display name the key, unless given.
    dependents: keys that take their meaning from this one.
    recommender: the values to offer, given the parsed values by key.
    visible: whether the option matters, given the parsed values by key.
    internal: it works, but the reference keeps silent about it.
    """
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
