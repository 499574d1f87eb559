"""What can be wrong with a value on its way from or to JSON."""

from __future__ import annotations

from typing import Self

from connect.errors import DataError

__all__ = ["InexactError", "UnfitError", "kind_of"]


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
