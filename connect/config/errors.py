"""Errors that refuse a configuration, worded like Kafka's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from connect.config.password import HIDDEN
from connect.config.types import display_value
from connect.errors import ConfigError

__all__ = [
    "ConfigRuleError",
    "InvalidConfigError",
    "invalid_value",
    "keys_of",
    "missing_value",
    "without_secrets",
]

_SHORT: Final = 4


class ConfigRuleError(ConfigError):
    """A configuration breaks a rule. ``message`` is the whole text, ``keys`` are the keys at which it is shown.

    Yield it from ``Config.check`` for a rule that involves several keys::

        yield ConfigRuleError("Must configure one of topics or topics.regex", "topics", "topics.regex")
    """

    def __init__(self, message: str, *keys: str) -> None:
        if not keys:
            raise TypeError("Name at least one key at which the error is shown")
        super().__init__(keys[0], None, message)
        self.args = (message,)
        self.keys = keys

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfigRuleError, (self.reason, *self.keys)


class InvalidConfigError(ConfigError):
    """A configuration has several mistakes: ``errors`` holds all of them, and the text lists them."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors = tuple(errors)
        lines = "\n".join(str(error) for error in self.errors)
        super().__init__(self.errors[0].key, None, lines)
        self.args = (f"The configuration is invalid and contains the following {len(self.errors)} errors:\n{lines}",)

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidConfigError, (self.errors,)


def invalid_value(key: str, value: object, reason: str) -> ConfigError:
    """Return the error with which a validator refuses ``value``; the text shows the value as Kafka does."""
    return ConfigError(key, display_value(value), reason)


def missing_value(key: str) -> ConfigError:
    """Return the error for a missing required key."""
    return ConfigRuleError(f'Missing required configuration "{key}" which has no default value.', key)


def keys_of(error: ConfigError) -> tuple[str, ...]:
    """Return the keys at which ``error`` is shown."""
    return error.keys if isinstance(error, ConfigRuleError) else (error.key,)


def without_secrets(error: ConfigError, secrets: Iterable[str]) -> ConfigError:
    """Return ``error`` with all ``secrets`` removed from its text.

    A secret of fewer than four characters is hidden only where it stands alone, without adjacent letters or digits:
    gaps inside other words would reveal it.
    """
    text = str(error)
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) < _SHORT:
            text = re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", HIDDEN, text)
        else:
            text = text.replace(secret, HIDDEN)
    return error if text == str(error) else ConfigRuleError(text, *keys_of(error))
