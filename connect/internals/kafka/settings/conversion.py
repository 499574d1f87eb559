"""Conversions of values from Java's client settings to librdkafka's.

A conversion rejects the values that Java rejects, with Java's error text. A number that Java allows but librdkafka does
not is replaced with the nearest allowed one: such numbers mean "never" or "no limit".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from connect.errors import ConfigError
from connect.internals.kafka.settings.client import PropertyValue

__all__ = [
    "INT_MAX",
    "LONG_MAX",
    "Conversion",
    "boolean",
    "integer",
    "kilobytes",
    "one_of",
    "parse_integer",
    "secret",
    "servers",
    "text",
]

Conversion = Callable[[str, str], PropertyValue]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_HOST = re.compile(r"[\w%.-]+")
_SERVER = re.compile(r"(?:(?i:plaintext|ssl|sasl_plaintext|sasl_ssl)://)?(?:[\w%.-]+|\[[\w%.:]+\]):\d{1,5}")


def parse_integer(key: str, value: str) -> int:
    """Return ``value`` as an integer, or refuse it."""
    try:
        return int(value.strip())
    except ValueError:
        raise ConfigError(key, value, "Not a number: give a whole number") from None


def integer(low: int, high: int, at_least: int = 0) -> Conversion:
    """Return a conversion for integers from ``at_least`` up, clipped to librdkafka's bounds ``low`` and ``high``."""

    def convert(key: str, value: str) -> PropertyValue:
        number = parse_integer(key, value)
        if number < at_least:
            raise ConfigError(key, number, f"Value must be at least {at_least}")
        return min(max(number, low), high)

    return convert


def kilobytes(key: str, value: str) -> PropertyValue:
    """Convert bytes to kilobytes, rounded up."""
    number = parse_integer(key, value)
    if number < 0:
        raise ConfigError(key, number, "Value must be at least 0")
    return min(max(-(-number // 1024), 1), INT_MAX)


def boolean(key: str, value: str) -> PropertyValue:
    """Convert ``true`` or ``false``, in any case."""
    match value.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ConfigError(key, value, "Expected value to be either true or false")


def text(_key: str, value: str) -> PropertyValue:
    """Return the text without surrounding blanks."""
    return value.strip()


def servers(key: str, value: str) -> PropertyValue:
    """Convert a comma-separated list of host:port pairs; as in Java, a protocol may precede each."""
    items = [item for item in map(str.strip, value.split(",")) if item]
    for item in items:
        if _SERVER.fullmatch(item) is None:
            example = f"{item}:9092" if _HOST.fullmatch(item) else "localhost:9092"
            raise ConfigError(key, value, f"{item!r} is not of the form host:port. Write for example {example}")
    return ",".join(items)


def secret(_key: str, value: str) -> PropertyValue:
    """Return a secret exactly as given."""
    return value


def one_of(choices: Mapping[str, str], remedy: str = "") -> Conversion:
    """Return a conversion from ``choices``, in any case, to librdkafka's words.

    ``remedy`` is the advice for other values.
    """

    def convert(key: str, value: str) -> PropertyValue:
        chosen = choices.get(value.strip().lower())
        if chosen is None:
            reason = f"String must be one of: {', '.join(choices)}"
            raise ConfigError(key, value, f"{reason}. {remedy}" if remedy else reason)
        return chosen

    return convert
