"""The options of table formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from connect.config import HIGH, MEDIUM, Config, matches, option
from connect.errors import ConfigError

__all__ = ["TableOptions"]

_TABLES = "Tables"


class TableOptions(Config):
    """The options that decide what a table is."""

    table_format: Literal["parquet", "iceberg", "delta"] = option(
        default="parquet",
        importance=HIGH,
        group=_TABLES,
        doc="What a table is: parquet, a folder of files; iceberg, an Apache Iceberg table; delta, a Delta Lake table.",
    )
    table_name_format: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=matches(r"([^.$/]+\.)*[^./]+", "name of a table, with ${topic} only in its last part"),
        group=_TABLES,
        doc="The name of a topic's table in an Iceberg catalog: ${topic} stands for the topic. Parts before a dot are "
        "its namespace (lake.${topic}_raw), which by default has the parts of topics.dir.",
    )

    def table_mistakes(self, partitioner: str, file_format: str) -> Iterable[ConfigError]:
        """Yield an error for each rule over several of these options that is broken."""
        if self.table_format != "iceberg" and self.table_name_format != "${topic}":
            reason = "Only tables of Iceberg have names of their own: set table.format=iceberg, or remove the key."
            yield ConfigError("table.name.format", self.table_name_format, reason)
        if self.table_format != "delta":
            return
        if partitioner not in ("DefaultPartitioner", "FieldPartitioner"):
            reason = f"With table.format={self.table_format} a table is divided by columns: use FieldPartitioner."
            yield ConfigError("partitioner.class", partitioner, reason)
        if file_format != "ParquetFormat":
            reason = f"table.format={self.table_format} has files of Parquet: remove the key."
            yield ConfigError("format.class", file_format, reason)
