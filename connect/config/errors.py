"""The errors that refuse a configuration, in Kafka's words."""

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
    """A configuration breaks a rule; ``message`` is the whole text and ``keys`` are the keys it is shown at.

    Yield it from ``Config.check`` for a rule over several keys::

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
    """A configuration has several mistakes: ``errors`` has each of them, and the text lists them all."""

    def __init__(self, errors: Iterable[ConfigError]) -> None:
        self.errors = tuple(errors)
        lines = "\n".join(str(error) for error in self.errors)
        super().__init__(self.errors[0].key, None, lines)
        self.args = (f"The configuration is invalid and contains the following {len(self.errors)} errors:\n{lines}",)

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidConfigError, (self.errors,)


def invalid_value(key: str, value: object, reason: str) -> ConfigError:
    """Return the error of a validator that refuses ``value``; the text shows it as Kafka does."""
    return ConfigError(key, display_value(value), reason)


def missing_value(key: str) -> ConfigError:
    """Return the error of a required key that is absent."""
    return ConfigRuleError(f'Missing required configuration "{key}" which has no default value.', key)


def keys_of(error: ConfigError) -> tuple[str, ...]:
    """Return the keys that ``error`` is shown at."""
    return error.keys if isinstance(error, ConfigRuleError) else (error.key,)


def without_secrets(error: ConfigError, secrets: Iterable[str]) -> ConfigError:
    """Return ``error`` with none of ``secrets`` in its text.

    One of fewer than four characters is hidden only where it stands alone, without a letter or digit beside it: holes
    in the words around it would tell what it is.
    """
    text = str(error)
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) < _SHORT:
            text = re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", HIDDEN, text)
        else:
            text = text.replace(secret, HIDDEN)
    return error if text == str(error) else ConfigRuleError(text, *keys_of(error))
