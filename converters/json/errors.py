"""Errors of converting values from and to JSON."""

from __future__ import annotations

from typing import Final, Self

from connect.errors import DataError

__all__ = ["DoubtError", "InexactError", "UnfitError", "WrongTypeError", "kind_of", "place_of"]

_MOST_CHARACTERS: Final = 100


class UnfitError(DataError):
    """A value does not match its schema. The message gives the path of the field, as far as it is known."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def within(self, step: str) -> Self:
        """Prepend a step to the path of this error: ``.name`` of a field or ``[index]`` of an element."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        return f'Invalid value for field "{self.path.removeprefix(".")}": {self.reason}' if self.path else self.reason


class InexactError(Exception):
    """A number was read as a float and may have lost digits, so the text must be read again, exactly."""


class WrongTypeError(Exception):
    """A value to be written is not of its schema's type."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = f": {reason}" if reason else ""


class DoubtError(Exception):
    """A column contains something unusual: its rows must be processed one by one."""


def place_of(key: object) -> str:
    """Return the path step for an index or a map key, which may be of any type."""
    if isinstance(key, str):
        return f"[{key[:_MOST_CHARACTERS]!r}]"
    # Python refuses to print integers of thousands of digits.
    return f"[{key}]" if isinstance(key, int) and key.bit_length() <= 64 else f"[{type(key).__name__}]"


def kind_of(node: object) -> str:
    """Return Jackson's name for the type of a parsed JSON value."""
    match node:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
        case dict():
            return "OBJECT"
        case _:
            return "NUMBER"
