"""Registers the tables of a connector in Hive, after its commits.

The ledger does not know of Hive: commits are registered with Hive afterwards, and registered again at the next start.

=============================  =====================================  ================================================
killed                         Hive                                   the next start
=============================  =====================================  ================================================
after the commit of a load     does not know of it: tables without    compares all tables and folders with those in
                               partitions show the rows all the       Hive, and adds what is missing
                               same, new folders are not seen
between table and partitions   has the columns, lacks the partitions  the same
=============================  =====================================  ================================================

This loses and duplicates nothing: rows are in the files, and Hive only lists folders.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from connect.data import Schema
from connect.internals.crash import crash_point
from connectors.spark.hive_table import HiveTable, hive_table, partition_columns, table_name
from connectors.spark.partitioner import Partitioner
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.hive.metastore import Metastore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HiveRegistration"]

logger = logging.getLogger(__name__)


class HiveRegistration:
    """Registers tables and their folders in Hive."""

    def __init__(
        self,
        config: SparkSinkConfig,
        connector: str,
        partitioner: Partitioner,
        source: str,
        place: Callable[[str], str],
    ) -> None:
        self._config = config
        self._connector = connector
        self._partitioner = partitioner
        self._source = source
        self._place = place
        self._metastore: Metastore | None = None

    def check(self, schema: Schema) -> None:
        """Raise :class:`~connect.errors.SchemaError` if Hive cannot hold a table of this schema."""
        self._table(schema)

    def register(self, spark: SparkSession, tables: Mapping[str, Schema], folders: Mapping[str, Iterable[str]]) -> None:
        """Create or change these tables in Hive, and add these folders to them."""
        crash_point("before-hive")
        if self._metastore is None:
            self._metastore = Metastore(spark, self._config, self._connector)
        for name, schema in sorted(tables.items()):
            known = table_name(self._config.hive_table_name, name)
            new = sorted(set(folders.get(name, ())))
            self._metastore.register(known, self._table(schema), self._source, self._place(name), new)
            logger.info(
                "Hive table %s.%s is up to date, with %d new partitions.", self._config.hive_database, known, len(new)
            )

    def _table(self, schema: Schema) -> HiveTable:
        config = self._config
        divided_by = config.partition_field_name if config.partitioner == "FieldPartitioner" else ()
        return hive_table(schema, partition_columns(schema, divided_by, self._partitioner.parts or ()))
