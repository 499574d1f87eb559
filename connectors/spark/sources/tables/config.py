"""The configuration of the table source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from connect.bulk_source import BulkSourceConfig
from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, at_least, non_empty_list, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from connectors.spark.iceberg.options import IcebergCatalogOptions
from connectors.spark.options.store import StoreOptions
from connectors.spark.sources.options import RowOptions

__all__ = ["SparkTableSourceConfig"]

_TABLES: Final = "Tables"
_GIB: Final = 1 << 30


class SparkTableSourceConfig(BulkSourceConfig, StoreOptions, IcebergCatalogOptions, RowOptions):
    """The options of the table source. Keys that begin with ``spark.`` are Spark's own and are passed to its
    session.
    """

    table_format: Literal["iceberg", "delta"] = option(
        importance=HIGH,
        group=_TABLES,
        doc="The format of the tables: iceberg, Apache Iceberg tables; delta, Delta Lake tables.",
    )
    tables: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        group=_TABLES,
        doc=(
            "The tables to read. For Iceberg, their names in the catalog with the namespace (lake.orders), "
            "which defaults to topics.dir; for Delta, their folders below topics.dir."
        ),
    )
    snapshot_mode: Literal["initial", "no_data"] = option(
        default="initial",
        importance=MEDIUM,
        group=_TABLES,
        doc=(
            "What to send of a table without an offset: initial, all its rows, then changes; no_data, only "
            "changes from now on."
        ),
    )
    envelope: Literal["none", "debezium"] = option(
        default="none",
        importance=MEDIUM,
        group=_TABLES,
        doc=(
            "How a record describes a change. none: its value is the row, and a record without a value "
            "deletes the key, which needs key.columns. debezium: its value has the row before and after, the "
            "operation (op: r, c, u, d) and its source, as Debezium writes it and upsert.envelope=debezium "
            "reads it."
        ),
    )
    load_max_versions: int = option(
        default=100,
        importance=LOW,
        validator=at_least(1),
        group=_TABLES,
        doc=(
            "The maximum number of versions that only added rows to send in one load. With key.columns each "
            "version is sent by itself, so that the rows of a key keep their order."
        ),
    )
    load_max_bytes: Long = option(
        default=10 * _GIB,
        importance=LOW,
        validator=at_least(1),
        group=_TABLES,
        doc=(
            "The maximum size of the files in one load, in bytes, after which the offset is committed, if "
            "there is more than one file."
        ),
    )

    @property
    def versions_at_once(self) -> int:
        """How many append-only versions may be sent together."""
        return 1 if self.key_columns else self.load_max_versions

    @property
    def tells_deletes(self) -> bool:
        """Whether records can express that a row was deleted."""
        return bool(self.key_columns) or self.envelope == "debezium"

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"The source of tables cannot run here. {reason}", "connector.class")
        has_catalog = self.iceberg_catalog_type not in (None, "hadoop")
        if self.has_store or self.table_format == "delta" or not has_catalog:
            yield from self.store_mistakes()
        yield from self.topic_mistakes("table")
        catalog = sorted(key for key in self.originals if key.startswith("iceberg."))
        if self.table_format == "delta" and catalog:
            yield ConfigRuleError(
                f"{catalog[0]} is for Iceberg tables: set table.format=iceberg, or remove it.", catalog[0]
            )
        if len(self.tables) > 1 and "${table}" not in self.topic:
            reason = "The rows of several tables would be mixed: write ${table} for the name of the table."
            yield ConfigError("topic", self.topic, reason)
