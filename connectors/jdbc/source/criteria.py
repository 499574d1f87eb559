"""The SQL of a poll: which rows are new, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connectors.jdbc.dialects.column import Column
from connectors.jdbc.dialects.dialect import Dialect
from connectors.jdbc.source.config import Mode

__all__ = ["Bounds", "Criteria"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The parameters of a poll, in the form that the database takes.

    Rows after ``number`` and ``time`` are new. Rows with a time are read if they are before ``end``; rows with only a
    number are read up to ``last``, if it is given.
    """

    number: int = -1
    time: Any = None
    end: Any = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Criteria:
    """The condition and order of a mode. The identifying columns are given as the database describes them."""

    dialect: Dialect
    mode: Mode
    incrementing: str = ""
    timestamps: Sequence[Column] = ()

    def statement(
        self, select: str, bounds: Bounds, suffix: str = "", *, escape: bool = False
    ) -> tuple[str, list[Any]]:
        """Return ``select`` with condition and order, and its parameters.

        ``escape`` is for SQL written by users, in which a per cent sign does not begin a parameter.
        """
        condition, order, parameters = self._parts(bounds)
        if escape and parameters:
            select, suffix = self._escaped(select), self._escaped(suffix)
        where = f" WHERE {condition} ORDER BY {order}" if condition else ""
        return f"{select}{where}{' ' + suffix if suffix else ''}", parameters

    def last_statement(self, source: str, number: int, *, escape: bool = False) -> tuple[str, list[Any]]:
        """Return the query for the greatest number after ``number`` in a table or parenthesized query."""
        name, mark = self.dialect.quote(self.incrementing), self.dialect.placeholder
        source = self._escaped(source) if escape else source
        return f"SELECT max({name}) FROM {source} WHERE {name} > {mark}", [number]  # noqa: S608 - names are quoted

    def _escaped(self, text: str) -> str:
        return text.replace("%", "%%") if self.dialect.placeholder == "%s" else text

    def _parts(self, bounds: Bounds) -> tuple[str, str, list[Any]]:
        mark, number = self.dialect.placeholder, self.dialect.quote(self.incrementing)
        time = self._time()
        match self.mode:
            case Mode.INCREMENTING if bounds.last is not None:
                return f"{number} > {mark} AND {number} <= {mark}", f"{number} ASC", [bounds.number, bounds.last]
            case Mode.INCREMENTING:
                return f"{number} > {mark}", f"{number} ASC", [bounds.number]
            case Mode.TIMESTAMP:
                return f"{time} > {mark} AND {time} < {mark}", f"{time} ASC", [bounds.time, bounds.end]
            case Mode.TIMESTAMP_INCREMENTING:
                after = f"(({time} = {mark} AND {number} > {mark}) OR {time} > {mark})"
                parameters = [bounds.end, bounds.time, bounds.number, bounds.time]
                return f"{time} < {mark} AND {after}", f"{time} ASC, {number} ASC", parameters
            case _:
                return "", "", []

    def _time(self) -> str:
        if not self.timestamps:
            return ""
        names = [self.dialect.quote(column.name) for column in self.timestamps]
        whole = names[0] if len(names) == 1 else f"COALESCE({','.join(names)})"
        return self.dialect.timestamp_expression(whole)
