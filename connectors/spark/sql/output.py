"""The query on the way to a target: one place for all targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from connect.data import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from connectors.spark.loading.request import Output
    from connectors.spark.sql.query import Query, Result

__all__ = ["QueryOutput"]


class QueryOutput:
    """An :class:`~connectors.spark.loading.request.Output` that writes the result of a query to another one.

    The rows that come in have the schema of the records; what goes out has that of the table, ``known`` so far.
    """

    def __init__(self, query: Query, known: Mapping[str, Schema], output: Output) -> None:
        self._query = query
        self._known = known
        self._output = output
        self.results: dict[str, Result] = {}

    @property
    def commits(self) -> bool:
        """As the target has it."""
        return self._output.commits

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Write the result for the rows of a table."""
        result = self._query.answer(frame, table, self._known.get(table))
        self._output.write(result.frame, table, result.schema, attempt)
        self.results[table] = result
