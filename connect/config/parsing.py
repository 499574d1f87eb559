"""Parsing of property text to typed values, exactly as Kafka does it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from connect.config.errors import invalid_value
from connect.config.password import HIDDEN, Password
from connect.config.types import ConfigType, ParsedValue
from connect.data.numerals import integer_range
from connect.errors import ConfigError

__all__ = ["parse_value"]

# What Java's String.trim takes away: every control character and the space, and no other white space.
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_WHITE_SPACE: Final = " \t\n\r\f\v"
_INTEGER: Final = re.compile(r"([+-]?)(?=\d)0*(\d{0,19})")
"""A number of more digits is wider than any type, and Python reads no more than 4300 of them."""
_DECIMAL: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"([+-]?0[xX](?:[\da-fA-F]+(?:\.[\da-fA-F]*)?|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII
)
_NOT_FINITE: Final = re.compile(r"[+-]?(?:NaN|Infinity)")
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_RANGES: Final = {kind: integer_range(bits) for kind, bits in _BITS.items()}


def parse_value(key: str, value: object, config_type: ConfigType) -> ParsedValue:
    """Return ``value`` as ``config_type``: text is parsed; a value of that type and ``None`` are returned unchanged.

    Every other value raises a ``ConfigError`` about ``key``. Whether a CLASS exists is not checked here.
    """
    return None if value is None else _PARSERS[config_type](key, value)


def _parse_boolean(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        match value.strip(_TRIMMED).lower():
            case "true":
                return True
            case "false":
                return False
    raise invalid_value(key, value, "Expected value to be either true or false")


def _parse_integer(config_type: ConfigType, key: str, value: object) -> int:
    if isinstance(value, str) and (match := _INTEGER.fullmatch(value.strip(_TRIMMED))):
        number = int(match[1] + (match[2] or "0"))
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        raise invalid_value(key, value, f"Not a number of type {config_type}")
    else:
        raise _wrong_type(key, value, f"a {_BITS[config_type]}-bit integer")
    least, greatest = _RANGES[config_type]
    if not least <= number <= greatest:
        raise invalid_value(key, value, f"Not a number of type {config_type}")
    return number


def _parse_double(key: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        raise _wrong_type(key, value, "a double")
    text = value.strip(_TRIMMED)
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    if match := _DECIMAL.fullmatch(text):
        return float(match[1])
    if match := _HEXADECIMAL.fullmatch(text):
        return _from_hexadecimal(match[1])
    raise invalid_value(key, value, f"Not a number of type {ConfigType.DOUBLE}")


def _from_hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        # As Java's: what is too large is infinite.
        return -math.inf if text.startswith("-") else math.inf


def _parse_list(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        text = value.strip(_TRIMMED)
        return tuple(item.strip(_WHITE_SPACE) for item in text.split(",")) if text else ()
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(str(item) for item in value)
    raise invalid_value(key, value, "Expected a comma separated list.")


def _parse_password(key: str, value: object) -> Password:
    if isinstance(value, Password):
        return value
    if isinstance(value, str):
        return Password(value.strip(_TRIMMED))
    raise invalid_value(key, HIDDEN, f"Expected value to be a string, but it was a {type(value).__name__}")


def _parse_string(key: str, value: object) -> str:
    if isinstance(value, str):
        return value.strip(_TRIMMED)
    raise _wrong_type(key, value, "a string")


def _wrong_type(key: str, value: object, expected: str) -> ConfigError:
    return invalid_value(key, value, f"Expected value to be {expected}, but it was a {type(value).__name__}")


_PARSERS: Final[Mapping[ConfigType, Callable[[str, object], ParsedValue]]] = {
    ConfigType.BOOLEAN: _parse_boolean,
    ConfigType.STRING: _parse_string,
    ConfigType.INT: partial(_parse_integer, ConfigType.INT),
    ConfigType.SHORT: partial(_parse_integer, ConfigType.SHORT),
    ConfigType.LONG: partial(_parse_integer, ConfigType.LONG),
    ConfigType.DOUBLE: _parse_double,
    ConfigType.LIST: _parse_list,
    ConfigType.CLASS: _parse_string,
    ConfigType.PASSWORD: _parse_password,
}
