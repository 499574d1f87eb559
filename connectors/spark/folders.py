"""Lets Spark write the rows of a load into folders, in as few and as large files as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions
from pyspark.sql.types import StringType

from connect.data import Schema
from connect.errors import SchemaError
from connectors.spark.decoding.placement import FOLDER_COLUMN
from connectors.spark.folder_fields import NULL_FOLDER
from connectors.spark.formats import FileFormat
from connectors.spark.options.layout import DEFAULT_FILE_SIZE
from connectors.spark.partitioner import Partitioner, check_parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["FolderWriter", "shown_by_folders"]

_SIZE: Final = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_SHUFFLED: Final = 3
"""How many bytes of shuffled rows become about one byte of a file."""


class FolderWriter:
    """Writes data frames in one format, partitioned by one partitioner."""

    def __init__(self, file_format: FileFormat, partitioner: Partitioner, file_size: int | None) -> None:
        self._format = file_format
        self._partitioner = partitioner
        self._file_size = file_size

    def check(self, table: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if files in folders cannot hold this table's rows."""
        self._partitioner.check(table)
        columns = self._partitioner.columns
        self._format.check(Schema.struct([field for field in table.fields if field.name not in columns]))

    def arranged(self, frame: DataFrame, table: Schema, *, named: bool) -> tuple[DataFrame, list[str]]:
        """Return the rows as they are to be written, and the columns that name their folders.

        With ``named``, the folders that Spark creates are final, so each of their parts needs a name.
        """
        columns = list(self._partitioner.columns)
        for name in columns:
            if name not in frame.columns:
                nested = functions.col(".".join(f"`{part}`" for part in name.split(".")))
                frame = frame.withColumn(name, nested)
        if self._partitioner.gathers:
            session = frame.sparkSession
            if self._file_size is not None or session.conf.get(_SIZE, None) is None:
                session.conf.set(_SIZE, str(_SHUFFLED * (self._file_size or DEFAULT_FILE_SIZE)))
            frame = frame.hint("rebalance", *[_column(name) for name in columns])
        frame = self._format.prepared(shown_by_folders(frame, columns), columns)
        if named and columns == [FOLDER_COLUMN]:
            return self._named(frame, table)
        return frame, columns

    def _named(self, frame: DataFrame, table: Schema) -> tuple[DataFrame, list[str]]:
        """Return the rows with a column for each part of their folder."""
        parts = self._partitioner.parts
        if parts is None:
            raise SchemaError(
                "In this store, path.format must name each part of the folders, as in 'year'=YYYY/'month'=MM, "
                "because files have their final names while they are written."
            )
        check_parts(self._partitioner, table)
        for number, name in enumerate(parts):
            part = functions.split(_column(FOLDER_COLUMN), "/").getItem(number)
            frame = frame.withColumn(name, functions.substring_index(part, "=", -1))
        return frame.drop(FOLDER_COLUMN), list(parts)


def shown_by_folders(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows, so that Spark's job fails for a text that readers of folders would take for null.

    Of records, those with such a text have been left out; the rows of a query's result are of no record.
    """
    for name in columns:
        if isinstance(frame.schema[name].dataType, StringType) and name != FOLDER_COLUMN:
            column = _column(name)
            reason = functions.lit(
                f"The query's result has the text '' or {NULL_FOLDER} in {name}, by which the table is partitioned; "
                f"readers would take it for null. Write nullif({name}, '') or another text in the query (sql)."
            )
            whole = functions.when(column.isin("", NULL_FOLDER), functions.raise_error(reason)).otherwise(column)
            frame = frame.withColumn(name, whole)
    return frame


def _column(name: str) -> Column:
    return functions.col(f"`{name.replace('`', '``')}`")
