"""The options of tables: their format and names, and whether records replace rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from connect.config import HIGH, LOW, MEDIUM, Config, matches, option
from connect.errors import ConfigError
from connectors.spark.decoding.changes import ChangePlan

__all__ = ["TableOptions", "UpsertOptions"]

_TABLES = "Tables"
_DEFAULT_ID_COLUMNS = "iceberg.tables.default-id-columns"


class TableOptions(Config):
    """The options that determine the kind of tables."""

    table_format: Literal["parquet", "iceberg", "delta"] = option(
        default="parquet",
        importance=HIGH,
        group=_TABLES,
        doc=(
            "The format of tables: parquet, a folder of files; iceberg, an Apache Iceberg table; delta, a "
            "Delta Lake table."
        ),
    )
    table_name_format: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=matches(r"([^.$/]+\.)*[^./]+", "name of a table, with ${topic} only in its last part"),
        group=_TABLES,
        doc=(
            "The name of a topic's table in an Iceberg catalog; ${topic} stands for the topic. The parts "
            "before the last dot are its namespace (lake.${topic}_raw); the default namespace is topics.dir."
        ),
    )

    def table_mistakes(self, partitioner: str, file_format: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if self.table_format != "iceberg" and self.table_name_format != "${topic}":
            reason = "Only Iceberg tables can be renamed: set table.format=iceberg, or remove the key."
            yield ConfigError("table.name.format", self.table_name_format, reason)
        if self.table_format != "delta":
            return
        if partitioner not in ("DefaultPartitioner", "FieldPartitioner"):
            reason = f"With table.format={self.table_format}, tables are partitioned by columns: use FieldPartitioner."
            yield ConfigError("partitioner.class", partitioner, reason)
        if file_format != "ParquetFormat":
            reason = f"table.format={self.table_format} always uses Parquet files: remove the key."
            yield ConfigError("format.class", file_format, reason)


class UpsertOptions(Config):
    """The options that decide what happens to a record whose row exists already."""

    write_mode: Literal["append", "upsert"] = option(
        default="append",
        importance=MEDIUM,
        group=_TABLES,
        doc=(
            "What a record does to its table: append adds a row; upsert replaces or deletes the row with the "
            "same key, and needs table.format=iceberg or delta."
        ),
    )
    upsert_keys: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_TABLES,
        doc=(
            "The key columns of a row. They are taken from the record's key if it has fields with these "
            "names, otherwise from its value; a key that is not a struct is the single column named here. By "
            "default, the fields of the record's key are used. The Iceberg sink's "
            "iceberg.tables.default-id-columns is accepted as well."
        ),
    )
    upsert_envelope: Literal["none", "debezium", "flattened"] = option(
        default="none",
        importance=LOW,
        group=_TABLES,
        doc=(
            "How records describe changes. none: the value is the row, and a record without a value deletes "
            "it. debezium: an envelope with before, after and op. flattened: the output of Debezium's "
            "ExtractNewRecordState, with __deleted or __op."
        ),
    )

    @property
    def changes(self) -> ChangePlan | None:
        """How to read records as changes, if they are changes."""
        if self.write_mode == "append":
            return None
        named = self.originals.get(_DEFAULT_ID_COLUMNS) or ""
        keys = self.upsert_keys or tuple(filter(None, (name.strip() for name in named.split(","))))
        return ChangePlan(self.upsert_envelope, keys)

    def upsert_mistakes(self, table_format: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if self.write_mode == "upsert" and table_format == "parquet":
            reason = "Tables with table.format=parquet cannot be updated: set table.format=iceberg or delta."
            yield ConfigError("write.mode", self.write_mode, reason)
        if self.write_mode == "append" and self.upsert_envelope != "none":
            reason = "This applies only to write.mode=upsert: set that, or remove this key."
            yield ConfigError("upsert.envelope", self.upsert_envelope, reason)
