"""The errors of the plugin API. The class of an error decides what the runtime does.

A ``ConfigError`` refuses a configuration, a ``DataError`` is handled as ``errors.tolerance`` says, a ``RetriableError``
makes the runtime try again, and any other error fails the task.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadyExistsError",
    "ConfigError",
    "ConnectError",
    "DataError",
    "MissingError",
    "NotFoundError",
    "PluginError",
    "RetriableError",
    "SchemaError",
    "os_reason",
]


class ConnectError(Exception):
    """A failure in a connector, a plugin or the runtime, described for the person who operates it."""


class ConfigError(ConnectError):
    """A configuration value is refused. The text is Kafka Connect's, so that tools which parse it keep working.

    The text shows ``value`` (``None`` as null). For a secret pass the string ``[hidden]``, as
    :func:`connect.config.invalid_value` does.
    """

    def __init__(self, key: str, value: object, reason: str) -> None:
        text = f"Invalid value {'null' if value is None else value} for configuration {key}"
        super().__init__(f"{text}: {reason}" if reason else text)
        self.key = key
        self.value = value
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.value, self.reason)


class DataError(ConnectError):
    """A record cannot be read, converted, transformed or written; ``errors.tolerance`` decides what happens to it."""


class SchemaError(DataError):
    """A schema is malformed, or two schemas that must match do not."""


class RetriableError(ConnectError):
    """The operation may succeed if it is tried again, not earlier than ``retry_after`` seconds from now."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.retry_after)


class MissingError(RetriableError):
    """What a source reads does not exist (yet), such as its file or folder.

    The runtime polls again, and shows until then that the task waits, and why: the text is for users. A connector with
    ``run.until=drained`` fails if it waits for too long.
    """


class NotFoundError(ConnectError):
    """The named resource does not exist (REST: 404)."""


class AlreadyExistsError(ConnectError):
    """The resource to create already exists (REST: 409)."""


class PluginError(ConnectError):
    """A plugin cannot be found or imported, or is of the wrong kind."""


def os_reason(error: BaseException) -> str:
    """Return the operating system's reason for ``error``, such as "Connection refused"; by default the error's text."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)
