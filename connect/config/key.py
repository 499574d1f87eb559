"""One key of a configuration, as the runtime and the REST API see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from connect.config.option import Importance, Recommender, Visibility, Width
from connect.config.password import HIDDEN, Password
from connect.config.types import ConfigType, ParsedValue
from connect.config.validators import Validator
from connect.errors import ConfigError

__all__ = ["ConfigKey", "embed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """Everything known about one key. ``default`` means nothing when the key is ``required``."""

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
        """Raise ``ConfigError`` when the validator refuses ``value``, which may be ``None`` if nullable.

        The validator of a password is given its text; the error about a secret tells the rule, not why.
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

    They are put in ``group`` and numbered from ``first_order`` in the order in which Kafka shows them: by
    their own groups and orders, what is required first, then by importance and name.
    """
    children = list(keys)
    groups = [None, *dict.fromkeys(key.group for key in children if key.group is not None)]
    importances = list(Importance)

    def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
        importance = importances.index(key.importance)
        return groups.index(key.group), key.order_in_group, not key.required, importance, key.name

    return tuple(
        replace(
            key,
            name=prefix + key.name,
            group=group if key.group is None else f"{group}: {key.group}",
            order_in_group=first_order + position,
            dependents=tuple(prefix + dependent for dependent in key.dependents),
            recommender=key.recommender and _recommender_below(prefix, key.recommender),
            visible=key.visible and _visibility_below(prefix, key.visible),
        )
        for position, key in enumerate(sorted(children, key=rank))
    )


def _recommender_below(prefix: str, recommender: Recommender) -> Recommender:
    return lambda values: recommender(_values_below(prefix, values))


def _visibility_below(prefix: str, visible: Visibility) -> Visibility:
    return lambda values: visible(_values_below(prefix, values))


def _values_below(prefix: str, values: Mapping[str, ParsedValue]) -> Mapping[str, ParsedValue]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
