"""The SQL of a poll: which rows are new, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connect.kits.sql.column import Column
from connect.kits.sql.dialect import Dialect
from connectors.jdbc.source.config import Mode
from connectors.jdbc.source.local_times import LocalTimes

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

    @property
    def times(self) -> LocalTimes:
        """The clock by which rows are ordered."""
        return LocalTimes(self.dialect.time_zone(self.timestamps))

    def statement(self, select: str, bounds: Bounds, suffix: str = "") -> tuple[str, list[Any]]:
        """Return ``select`` with condition and order, and its parameters.

        If there are parameters, per cent signs in names and in the user's SQL are doubled, so that none begins one.
        """
        condition, order, parameters = self._parts(bounds)
        if parameters:
            select, suffix = self.dialect.escaped(select), self.dialect.escaped(suffix)
        where = f" WHERE {condition} ORDER BY {order}" if condition else ""
        return f"{select}{where}{' ' + suffix if suffix else ''}", parameters

    def early_statement(self, source: str, time: Any) -> tuple[str, list[Any]]:
        """Return the query for whether there are rows before those that a pass after ``time`` finds."""
        before = "<=" if self.mode is Mode.TIMESTAMP else "<"
        found = f"SELECT 1 FROM {self.dialect.escaped(source)} WHERE {self._time()} {before} {self.dialect.placeholder}"  # noqa: S608
        return f"{found} LIMIT 1", [time]

    def unreadable_statement(self, select: str) -> str | None:
        """Return the query for rows that no pass finds, since their time cannot be read; ``None`` if there are none."""
        condition = self.dialect.unreadable_time(self._coalesced()) if self.timestamps else None
        return None if condition is None else f"{select} WHERE {condition}"

    def last_statement(self, source: str, number: int) -> tuple[str, list[Any]]:
        """Return the query for the greatest number after ``number`` in a table or parenthesized query."""
        name, mark = self.dialect.escaped(self.dialect.quote(self.incrementing)), self.dialect.placeholder
        source = self.dialect.escaped(source)
        return f"SELECT max({name}) FROM {source} WHERE {name} > {mark}", [number]  # noqa: S608 - names are quoted

    def _parts(self, bounds: Bounds) -> tuple[str, str, list[Any]]:
        mark, number = self.dialect.placeholder, self.dialect.escaped(self.dialect.quote(self.incrementing))
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
        return self.dialect.timestamp_expression(self._coalesced()) if self.timestamps else ""

    def _coalesced(self) -> str:
        names = [self.dialect.escaped(self.dialect.quote(column.name)) for column in self.timestamps]
        return names[0] if len(names) == 1 else f"COALESCE({','.join(names)})"
