"""Conversions from the value of a Java client setting to librdkafka's value.

A conversion refuses what Java refuses, in Java's words. A number that Java allows and librdkafka does not is
brought to the nearest one that librdkafka allows: such numbers stand for "never" or "no limit".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from connect.errors import ConfigError
from connect.kafka.settings.client import PropertyValue

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
    """Return the whole number ``value``, or refuse it."""
    try:
        return int(value.strip())
    except ValueError:
        raise ConfigError(key, value, "Not a number: give a whole number") from None


def integer(low: int, high: int, at_least: int = 0) -> Conversion:
    """Whole numbers from ``at_least`` up, brought between ``low`` and ``high``, librdkafka's bounds."""

    def convert(key: str, value: str) -> PropertyValue:
        number = parse_integer(key, value)
        if number < at_least:
            raise ConfigError(key, number, f"Value must be at least {at_least}")
        return min(max(number, low), high)

    return convert


def kilobytes(key: str, value: str) -> PropertyValue:
    """Bytes, given to librdkafka in kilobytes and rounded up."""
    number = parse_integer(key, value)
    if number < 0:
        raise ConfigError(key, number, "Value must be at least 0")
    return min(max(-(-number // 1024), 1), INT_MAX)


def boolean(key: str, value: str) -> PropertyValue:
    """``true`` or ``false`` in any case."""
    match value.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ConfigError(key, value, "Expected value to be either true or false")


def text(_key: str, value: str) -> PropertyValue:
    """Any text, without the blanks around it."""
    return value.strip()


def servers(key: str, value: str) -> PropertyValue:
    """Pairs of host and port with commas between them; a protocol may stand before each, as in Java."""
    items = [item for item in map(str.strip, value.split(",")) if item]
    for item in items:
        if _SERVER.fullmatch(item) is None:
            example = f"{item}:9092" if _HOST.fullmatch(item) else "localhost:9092"
            raise ConfigError(key, value, f"{item!r} is not of the form host:port. Write for example {example}")
    return ",".join(items)


def secret(_key: str, value: str) -> PropertyValue:
    """A secret, exactly as it was given."""
    return value


def one_of(choices: Mapping[str, str], remedy: str = "") -> Conversion:
    """One of ``choices`` in any case, given as librdkafka's word; ``remedy`` is what to do with others."""

    def convert(key: str, value: str) -> PropertyValue:
        chosen = choices.get(value.strip().lower())
        if chosen is None:
            reason = f"String must be one of: {', '.join(choices)}"
            raise ConfigError(key, value, f"{reason}. {remedy}" if remedy else reason)
        return chosen

    return convert
