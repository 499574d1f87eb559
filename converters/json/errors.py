"""What can be wrong with a value on its way from or to JSON."""

from __future__ import annotations

from typing import Final, Self

from connect.errors import DataError

__all__ = ["DoubtError", "InexactError", "UnfitError", "WrongTypeError", "kind_of", "place_of"]

_LONGEST: Final = 100


class UnfitError(DataError):
    """A value is not what its schema says. The text names the path of the field, as far as it is known."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def within(self, step: str) -> Self:
        """This error, seen from one step further out: ``.name`` of a field or ``[index]`` of an element."""
        self.path = step + self.path
        return self

    def __str__(self) -> str:
        return f'Invalid value for field "{self.path.removeprefix(".")}": {self.reason}' if self.path else self.reason


class InexactError(Exception):
    """A number was read as a float where the text says more than that; it must be read again, exactly."""


class WrongTypeError(Exception):
    """A value to be written is not of the type that its schema says."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = f": {reason}" if reason else ""


class DoubtError(Exception):
    """A column holds something out of the ordinary: go through its rows."""


def place_of(key: object) -> str:
    """How the path to a value shows an index, or the key of a map, which may be anything."""
    if isinstance(key, str):
        return f"[{key[:_LONGEST]!r}]"
    # Python refuses to write out whole numbers of thousands of digits.
    return f"[{key}]" if isinstance(key, int) and key.bit_length() <= 64 else f"[{type(key).__name__}]"


def kind_of(node: object) -> str:
    """What Jackson calls the type of a parsed JSON value."""
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
