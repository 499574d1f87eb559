"""Validation of properties: the value of each key, its errors, and recommended values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from connect.config.errors import ConfigRuleError, missing_value
from connect.config.option import ConfigKey
from connect.config.parsing import parse_value
from connect.config.password import HIDDEN, Password
from connect.config.types import ConfigType, ParsedValue
from connect.errors import ConfigError

__all__ = ["ConfigValue", "Reading", "describe_readings", "read_keys", "validate_keys"]


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """The result of validating one key. A value that could not be parsed is ``None``."""

    name: str
    value: ParsedValue = None
    recommended_values: tuple[ParsedValue, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True

    def with_errors(self, *messages: str) -> ConfigValue:
        """Return this result with ``messages`` added to its errors."""
        return replace(self, errors=(*self.errors, *messages))


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of one key and the errors that refuse it."""

    key: ConfigKey
    value: ParsedValue = field(repr=False)
    errors: tuple[ConfigError, ...] = ()


def read_keys(
    keys: Iterable[ConfigKey], props: Mapping[str, object], *, secret_keys: Collection[str] = ()
) -> dict[str, Reading]:
    """Parse and check the value of each of ``keys``; errors about ``secret_keys`` do not show it."""
    return {key.name: _read_key(key, props, secret=key.name in secret_keys) for key in keys}


def validate_keys(
    keys: Iterable[ConfigKey], props: Mapping[str, object], *, secret_keys: Collection[str] = ()
) -> tuple[ConfigValue, ...]:
    """Validate ``props`` and return the result for each of ``keys``."""
    return describe_readings(read_keys(keys, props, secret_keys=secret_keys), secret_keys)


def describe_readings(readings: Mapping[str, Reading], secret_keys: Collection[str]) -> tuple[ConfigValue, ...]:
    """Return the results for ``readings``, with recommended values; the values of ``secret_keys`` are hidden."""
    values = {name: reading.value for name, reading in readings.items()}
    return tuple(_describe(reading, values, reading.key.name in secret_keys) for reading in readings.values())


def _describe(reading: Reading, values: Mapping[str, ParsedValue], secret: bool) -> ConfigValue:
    key = reading.key
    shown = Password(str(reading.value)) if secret and reading.value is not None else reading.value
    described = ConfigValue(key.name, shown, errors=tuple(str(error) for error in reading.errors))
    try:
        recommended = tuple(key.recommender(values)) if key.recommender else ()
        visible = key.visible(values) if key.visible else True
    except ConfigError as error:
        return described.with_errors(str(error))
    return replace(described, recommended_values=recommended, visible=visible)


def _read_key(key: ConfigKey, props: Mapping[str, object], *, secret: bool) -> Reading:
    secret = secret or key.type is ConfigType.PASSWORD
    value: ParsedValue = None
    errors: list[ConfigError] = []
    try:
        value = _parsed(key, props)
    except ConfigRuleError as error:
        errors.append(error)
    except ConfigError as error:
        errors.append(ConfigError(key.name, HIDDEN, error.reason) if secret else error)
    # As in Kafka the validator is asked about a value that could not be parsed too: it may refuse null.
    try:
        key.ensure_valid(value, secret=secret)
    except ConfigError as error:
        errors.append(error)
        # A class that cannot be loaded has no value, in Kafka either.
        value = None if key.type is ConfigType.CLASS else value
    return Reading(key, value, tuple(errors))


def _parsed(key: ConfigKey, props: Mapping[str, object]) -> ParsedValue:
    if key.name not in props:
        if key.required:
            raise missing_value(key.name)
        return key.default
    if props[key.name] is None and not key.nullable:
        raise ConfigRuleError("Null value can not be supplied as the configuration value.", key.name)
    return parse_value(key.name, props[key.name], key.type)
