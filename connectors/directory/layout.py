"""What the formats have in common: a layout cuts the bytes of a file into records and reads their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from connect.data import Column, Schema, ValueColumn
from connectors.directory.records import Cutter, Records

__all__ = ["BadRow", "Layout", "Parsed", "parse_rows"]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that cannot be read, by its index among the records, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of the good records, the indices of these (``None``: all are good), and the bad ones."""

    column: Column
    good: Sequence[int] | None = None
    bad: Sequence[BadRow] = ()


class Layout(Protocol):
    """How the bytes of one file are to be read."""

    @property
    def cut(self) -> Cutter:
        """Cuts them into records."""

    def parse(self, records: Records) -> Parsed:
        """Reads the values of records."""


def parse_rows(records: Records, schema: Schema | None, parse: Callable[[int], Any]) -> Parsed:
    """Read records one by one; where ``parse`` raises a ``ValueError`` the record is bad, and it says why."""
    values: list[Any] = []
    good: list[int] = []
    bad: list[BadRow] = []
    for index in range(len(records)):
        try:
            values.append(parse(index))
        except ValueError as error:
            bad.append(BadRow(index, str(error)))
        else:
            good.append(index)
    return Parsed(ValueColumn(values, schema), good if bad else None, bad)
