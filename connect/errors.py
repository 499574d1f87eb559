"""The errors of the plugin API. Each says what the runtime should do about it.

``ConfigError`` refuses a config, ``DataError`` goes where ``errors.tolerance`` sends it, ``RetriableError``
asks to be tried again, everything else fails the task.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadyExistsError",
    "ConfigError",
    "ConnectError",
    "DataError",
    "NotFoundError",
    "PluginError",
    "RetriableError",
    "SchemaError",
]


class ConnectError(Exception):
    """Anything that went wrong in a connector, a plugin or the runtime, told to the person who runs it."""


class ConfigError(ConnectError):
    """A configuration is refused. The text is Kafka Connect's, so that tools which read it keep working.

    ``value`` is shown: of a secret pass the string ``[hidden]``, as :func:`connect.config.invalid_value` does.
    """

    def __init__(self, key: str, value: object, reason: str) -> None:
        text = f"Invalid value {value} for configuration {key}"
        super().__init__(f"{text}: {reason}" if reason else text)
        self.key = key
        self.value = value
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.value, self.reason)


class DataError(ConnectError):
    """A record cannot be read, converted, transformed or written; ``errors.tolerance`` decides what becomes of it."""


class SchemaError(DataError):
    """A schema is not well formed, or two schemas that must agree do not."""


class RetriableError(ConnectError):
    """The operation may succeed when tried again, no sooner than ``retry_after`` seconds from now if given."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.retry_after)


class NotFoundError(ConnectError):
    """What was named does not exist (REST: 404)."""


class AlreadyExistsError(ConnectError):
    """What was to be made exists already (REST: 409)."""


class PluginError(ConnectError):
    """A plugin cannot be found, imported or used as what it was named for."""
