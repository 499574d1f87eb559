"""A server-side cursor that returns rows even if psycopg has no Python value for something in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.pq import Format, TransactionStatus

__all__ = ["PostgresqlCursor"]


class PostgresqlCursor:
    """A server-side cursor. Values without a Python equivalent, such as the date ``infinity``, come as text."""

    def __init__(self, connection: psycopg.Connection[Any], name: str) -> None:
        self._connection = connection
        self._cursor = connection.cursor(name)

    @property
    def description(self) -> Any:
        """The columns of the result."""
        return self._cursor.description

    @property
    def pgresult(self) -> Any:
        """The result in libpq's form."""
        return self._cursor.pgresult

    def execute(self, sql: Any, parameters: Any = None) -> Any:
        """Declare the cursor."""
        return self._cursor.execute(sql, parameters)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """Return the next rows."""
        try:
            return self._cursor.fetchmany(size)
        except psycopg.DataError:
            if self._connection.info.transaction_status is TransactionStatus.INERROR:
                raise
            return self._row_by_row()

    def close(self) -> None:
        """Close the cursor on the server."""
        self._cursor.close()

    def _row_by_row(self) -> list[tuple[Any, ...]]:
        result = self.pgresult
        loaders = [_loader(self._connection, result.ftype(index)) for index in range(result.nfields)]
        return [tuple(_loaded(loaders, result, row)) for row in range(result.ntuples)]


def _loader(connection: Any, oid: int) -> Any:
    found = connection.adapters.get_loader(oid, Format.TEXT) or connection.adapters.get_loader(0, Format.TEXT)
    return found(oid, connection)


def _loaded(loaders: Sequence[Any], result: Any, row: int) -> list[Any]:
    values: list[Any] = []
    for index, loader in enumerate(loaders):
        data = result.get_value(row, index)
        try:
            values.append(None if data is None else loader.load(data))
        except psycopg.DataError:
            values.append(data.decode())
    return values
