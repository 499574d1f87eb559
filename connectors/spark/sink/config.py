"""The configuration of the Spark sink."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Self

from connect.bulk import BulkSinkConfig
from connect.config import ConfigValue
from connect.config.errors import ConfigRuleError
from connect.data import Schema, Type
from connect.errors import ConfigError, SchemaError
from connect.internals.extras import missing_extra
from connect.kits.files.partition_options import PARTITIONERS
from connect.kits.schema_json import schema_from_json
from connectors.spark.iceberg.options import IcebergOptions
from connectors.spark.options.layout import LayoutOptions
from connectors.spark.options.store import StoreOptions
from connectors.spark.schema import Evolution, table_schema
from connectors.spark.sink.iceberg.layout import FILE_FORMATS, partitions_of
from connectors.spark.sink.options.hive import HiveOptions
from connectors.spark.sink.options.records import RecordOptions
from connectors.spark.sink.options.storage_sinks import as_spark_sink, replacement_mistakes, replacement_warnings
from connectors.spark.sink.options.tables import TableOptions, UpsertOptions
from connectors.spark.sink.sql.options import SqlOptions

__all__ = ["SparkSinkConfig"]


class SparkSinkConfig(
    BulkSinkConfig,
    StoreOptions,
    TableOptions,
    IcebergOptions,
    UpsertOptions,
    LayoutOptions,
    HiveOptions,
    RecordOptions,
    SqlOptions,
):
    """The options of the Spark sink. Keys that begin with ``spark.`` are settings of the Spark session.

    Configurations of the sinks that it replaces are accepted as they are.
    """

    @classmethod
    def parse(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> Self:
        """Parse properties, including those of a sink that this one replaces."""
        return super().parse(as_spark_sink(props), secret_keys=secret_keys)

    @classmethod
    def validate(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> tuple[ConfigValue, ...]:
        """Validate properties, including those of a sink that this one replaces."""
        return super().validate(as_spark_sink(props), secret_keys=secret_keys)

    def warnings(self) -> Iterable[str]:
        """Warn about keys of a replaced sink that have no effect here, or a different one."""
        return replacement_warnings(self.originals)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"The Spark sink cannot run here. {reason}", "connector.class")
        if self.needs_store:
            yield from self.store_mistakes()
        yield from replacement_mistakes(self.originals)
        yield from self._rewriting_mistakes()
        yield from self._azure_table_mistakes()
        try:
            self.first_schema  # noqa: B018 - reading it is the check
        except ConfigError as error:
            yield error
        yield from self.layout_mistakes()
        yield from self.table_mistakes(self.partitioner, self.format)
        yield from self.record_mistakes()
        yield from self.hive_mistakes(self.format)
        yield from self._hidden_folder_mistakes()
        yield from self._hive_folder_mistakes()
        yield from self.upsert_mistakes(self.table_format)
        yield from self.sql_mistakes()
        yield from self.window_mistakes(has_store=self.has_store)
        yield from self._query_mistakes()
        yield from self._iceberg_mistakes()

    def _query_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each option that does not fit a query, because rows of its result belong to no single
        record.
        """
        if not self.has_query:
            return
        if self.write_mode == "upsert":
            reason = "The rows of a query's result are of no record and no change: set write.mode to append."
            yield ConfigError("write.mode", self.write_mode, reason)
        if self.partitioner not in PARTITIONERS[:2]:
            reason = (
                "A row of a query's result is of no record and has no time of one: use FieldPartitioner with a column "
                "of the result, such as date_trunc('DAY', at) AS day."
            )
            yield ConfigError("partitioner.class", self.partitioner_class, reason)

    def _iceberg_mistakes(self) -> Iterable[ConfigError]:
        yield from self.iceberg_mistakes(self._store_uri())
        if self.table_format == "iceberg":
            try:
                partitions_of(self)
            except ConfigError as error:
                yield error
            if self.format not in FILE_FORMATS:
                reason = f"Files of Iceberg tables are {', '.join(FILE_FORMATS)}; use one of them."
                yield ConfigError("format.class", self.format_class, reason)

    def _rewriting_mistakes(self) -> Iterable[ConfigError]:
        if self.schema_conflict != "rewrite":
            return
        others = {
            f"table.format={self.table_format}": self.table_format != "parquet",
            "hive.integration=true": self.hive_integration,
            "a query (sql), in which you can CAST,": self.has_query,
            f"schema.compatibility={self.schema_compatibility}": not self.evolution.widens,
        }
        for other in (name for name, is_set in others.items() if is_set):
            reason = f"Tables are not rewritten with {other}: use fail or new-column."
            yield ConfigError("schema.conflict", self.schema_conflict, reason)

    def _azure_table_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for tables in Azure that cannot be written, or only if Spark's Java is told how to sign in."""
        if self.table_format == "delta" and self._store_uri().startswith("abfs"):
            reason = "Delta's log in Azure is not supported: exactly-once has not been proven there. Use parquet."
            yield ConfigError("table.format", self.table_format, reason)
        if not self.has_store or any(self.store_mistakes()) or not self.needs_identity:
            return
        by_java = {
            "table.format": (self.table_format, self.table_format == "iceberg"),
            "format.class": (self.format_class, self.format != "ParquetFormat"),
            "partitioner.class": (self.partitioner_class, self.partitioner != PARTITIONERS[0]),
            "compact.interval.ms": (self.compact_interval_ms, self.compact_interval_ms is not None),
            "schema.conflict": (self.schema_conflict, self.schema_conflict == "rewrite"),
            "sql": (None, self.has_query),
        }
        for key, value in ((key, value) for key, (value, is_set) in by_java.items() if is_set):
            reason = (
                "Spark's Java has to write that, which looks for no identity in Azure: give azblob.account.key or "
                "azblob.sas.token, or say by spark.hadoop.fs.azure.account.* how it signs in."
            )
            yield ConfigError(key, value, reason)

    def _store_uri(self) -> str:
        try:
            return self.location.uri
        except ConfigError:
            return ""  # reported already

    @property
    def needs_store(self) -> bool:
        """Whether the location of the tables is required; an Iceberg catalog may know it."""
        knows = self.table_format == "iceberg" and self.iceberg_catalog_type not in (None, "hadoop")
        return self.has_store or not knows

    @property
    def evolution(self) -> Evolution:
        """How tables change; Delta and Hive take names that differ only in case for one."""
        from connectors.spark.column_limits import UNWIDENED  # noqa: PLC0415 - brings pyarrow

        folds = self.table_format == "delta" or self.hive_integration
        unwidened = UNWIDENED.get(self.table_format, frozenset())
        kept = Evolution.of("FORWARD", "fail") if self.keeps_columns else super().evolution
        return replace(kept, folds=folds, unwidened=unwidened, refuses=self._column_limits)

    @property
    def _column_limits(self) -> Callable[[Schema], None] | None:
        """What checks the columns of records, unless a query makes others of them."""
        from connectors.spark.column_limits import file_limits, table_limits  # noqa: PLC0415 - as above

        if self.has_query:
            return None
        if self.table_format != "parquet":
            return table_limits(self, self.table_format)
        return file_limits(self, self.location.kind, in_hive=self.hive_integration)

    @property
    def first_schema(self) -> Schema | None:
        """The initial schema of tables, if configured."""
        if self.value_schema is None:
            return None
        try:
            schema = schema_from_json(json.loads(self.value_schema))
        except (ValueError, SchemaError) as error:
            raise ConfigError("value.schema", self.value_schema, str(error)) from error
        if schema.type is not Type.STRUCT:
            raise ConfigError("value.schema", self.value_schema, "The schema of a table must be a struct.")
        return table_schema(schema)

    def _hidden_folder_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for folders of files that readers ignore; those of other tables are in their metadata."""
        if self.table_format != "parquet" or self.partitioner != "FieldPartitioner":
            return
        for name in self.partition_field_name:
            if name.startswith(("_", ".")):
                reason = (
                    "Readers would ignore the folders, because their names begin with _ or '.': rename the field "
                    "(ReplaceField), or use table.format=iceberg or delta."
                )
                yield ConfigError("partition.field.name", name, reason)

    def _hive_folder_mistakes(self) -> Iterable[ConfigError]:
        folders = self.time_folders
        if not self.hive_integration or folders is None or any(self.layout_mistakes()):
            return
        if not all("=" in part for part in folders.folder(0).split("/")):
            reason = "Hive needs a name for each part of the folders, as in 'year'=YYYY/'month'=MM."
            yield ConfigError("path.format", self.path_format, reason)
