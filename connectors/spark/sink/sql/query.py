"""The query of a connector (``sql``): receives the rows of a load and passes its result to the target."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from connect.data import Schema
from connect.errors import ConnectError, DataError, SchemaError
from connectors.spark.arrow_types import table_type
from connectors.spark.errors import root_cause
from connectors.spark.schema import Evolution, widen
from connectors.spark.sink.loading.request import ROWS_OF_RESULT, Output, Result
from connectors.spark.sink.sql.options import RECORDS, JdbcTable, SqlOptions, StoredTable
from connectors.spark.sink.sql.statement import check_query
from connectors.spark.sink.sql.types import schema_of_result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Query", "QueryOutput", "without_rows"]

_READ_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {"csv": {"header": "true", "inferSchema": "true"}}


class Query:
    """A checked query over the rows of a load, and the tables it joins."""

    def __init__(self, spark: SparkSession, options: SqlOptions, evolution: Evolution) -> None:
        # pyspark prints a query's error with Java's whole stack trace; the exception contains the message.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        self._spark = spark
        self._evolution = evolution
        self._asking = Lock()
        """Held while the view shows the rows of one topic, because several topics are loaded in parallel."""
        self._text = options.query_text
        self._tables = options.query_tables
        key = "sql" if options.sql is not None else "sql.file"
        check_query(spark, key, self._text, frozenset({RECORDS, *(table.name for table in self._tables)}))

    def answer(self, records: DataFrame, table: str, known: Schema | None) -> Result:
        """Return the result for these rows; ``known`` is the schema of the table so far.

        Raises :class:`~connect.errors.DataError` if the table cannot hold the result.
        """
        with self._asking:
            found = self._found(records, table)
        try:
            schema = schema_of_result(found.schema)
            schema = schema if known is None else self._grown(known, schema)
        except SchemaError as error:
            raise DataError(
                f"The result of the query (sql) does not fit table {table}: {error} CAST or rename it in the query."
            ) from error
        observation = Observation()
        counted = found.to(from_arrow_schema(table_type(schema).columns)).observe(
            observation, f.count(f.lit(1)).alias(ROWS_OF_RESULT)
        )
        return Result(counted, schema, observation)

    def _found(self, records: DataFrame, table: str) -> DataFrame:
        """Return the query's result for these rows; on return Spark has resolved the views."""
        for other in self._tables:
            self._frame(other).createOrReplaceTempView(other.name)
        records.createOrReplaceTempView(RECORDS)
        try:
            return self._spark.sql(self._text)
        except AnalysisException as error:
            raise ConnectError(
                f"The query (sql) does not fit the records of table {table}: {root_cause(error)} A field is "
                "only a column once a record has had a value for it: declare it with value.schema."
            ) from error

    def _grown(self, known: Schema, found: Schema) -> Schema:
        """Return the schema of the table extended for these rows."""
        grown = widen(known, found)
        if self._evolution.grown(known, found) != grown:
            raise SchemaError(
                "It needs new or wider columns, which schema.compatibility (or iceberg.tables.evolve-schema-enabled) "
                "does not allow."
            )
        return grown

    def _frame(self, table: StoredTable | JdbcTable) -> DataFrame:
        try:
            if isinstance(table, StoredTable):
                options = _READ_OPTIONS.get(table.format, {})
                return self._spark.read.format(table.format).options(**options).load(table.path)
            return self._jdbc(table)
        except Exception as error:
            raise ConnectError(
                f"The table {table.name} (sql.tables.{table.name}) cannot be read: {root_cause(error)}. "
                "Correct its keys, or make it readable."
            ) from error

    def _jdbc(self, table: JdbcTable) -> DataFrame:
        reader: Any = self._spark.read.format("jdbc").option("url", table.url).option("dbtable", table.table)
        if table.user is not None:
            reader = reader.option("user", table.user)
        if table.password is not None:
            reader = reader.option("password", table.password)
        frame: DataFrame = reader.load()
        return frame


class QueryOutput:
    """An :class:`~connectors.spark.sink.loading.request.Output` that writes the result of a query to another one.

    Incoming rows have the schema of the records; the result has that of the table, ``known`` so far.
    """

    def __init__(self, query: Query, known: Mapping[str, Schema], output: Output) -> None:
        self._query = query
        self._known = known
        self._output = output
        self.results: dict[str, Result] = {}

    @property
    def commits(self) -> bool:
        """Whether the target makes rows visible to readers at once."""
        return self._output.commits

    def write(self, frame: DataFrame, table: str, schema: Schema, attempt: int) -> None:  # noqa: ARG002
        """Write the result for the rows of a table."""
        result = self._query.answer(frame, table, self._known.get(table))
        self._output.write(result.frame, table, result.schema, attempt)
        self.results[table] = result


def without_rows(result: Result) -> Result:
    """Return the same columns without rows; the query is not run."""
    columns = from_arrow_schema(table_type(result.schema).columns)
    return Result(result.frame.sparkSession.createDataFrame([], columns), result.schema, None)
