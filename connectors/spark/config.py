"""The configuration of the Spark sink."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from connect.bulk import BulkSinkConfig
from connect.config import HIGH, LOW, MEDIUM, at_least, matches, non_empty, option
from connect.config.errors import ConfigRuleError
from connect.config.url import shown_url
from connect.data import Schema, Type
from connect.errors import ConfigError, SchemaError
from connect.extras import missing_extra
from connectors.spark.schema import table_schema
from connectors.spark.schema_json import schema_from_json

__all__ = ["SparkSinkConfig"]

_STORE = "Store"
_LAYOUT = "Layout"
_RECORDS = "Records"


class SparkSinkConfig(BulkSinkConfig):
    """The options of the Spark sink. Keys that begin with ``spark.`` are Spark's own and reach its session."""

    store_url: str = option(
        importance=HIGH,
        validator=non_empty,
        group=_STORE,
        doc="Where the tables and the ledger are: a folder, as a path or a file: URL. A relative path starts at "
        "the worker's working directory.",
    )
    topics_dir: str = option(
        default="topics",
        importance=HIGH,
        validator=matches(r"([^_./][^/]*(/[^_./][^/]*)*)?", "relative path whose parts do not begin with _ or ."),
        group=_STORE,
        doc="Folder in the store that contains the tables, each in a folder with the name of its topic; if empty, the "
        "store itself.",
    )
    partitioner_class: str = option(
        default="DefaultPartitioner",
        importance=HIGH,
        group=_LAYOUT,
        doc="How a table is divided into folders: DefaultPartitioner by the partition of the topic "
        "(partition=0), FieldPartitioner by the fields of partition.field.name (origin=EWR). The Java "
        "classes of these names are accepted.",
    )
    partition_field_name: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_LAYOUT,
        doc="The fields that FieldPartitioner divides by. Their values are only in the names of the folders.",
    )
    parquet_codec: Literal["none", "gzip", "snappy", "zstd"] = option(
        default="snappy",
        importance=LOW,
        group=_LAYOUT,
        doc="Compression of the Parquet files.",
    )
    filename_offset_zero_pad_width: int = option(
        default=10,
        importance=LOW,
        validator=at_least(0),
        group=_LAYOUT,
        doc="To how many digits offsets in file names are padded, so that names sort as offsets do.",
    )
    value_schema: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_RECORDS,
        doc="The initial schema of tables, as JSON in the form of JsonConverter's envelopes. Without it, the "
        "first load derives the schema from its records.",
    )
    behavior_on_null_values: Literal["fail", "ignore", "write"] = option(
        default="fail",
        importance=LOW,
        group=_RECORDS,
        doc="What to do with records without a value: fail (errors.tolerance decides), ignore, or write rows of nulls.",
    )
    store_kafka_keys: bool = option(
        default=False,
        importance=LOW,
        group=_RECORDS,
        doc="Whether tables have a column named key with the records' keys.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several options that is broken."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"The Spark sink cannot run here. {reason}", "connector.class")
        try:
            self.store  # noqa: B018 - reading it is the check
        except ConfigError as error:
            yield error
        try:
            self.first_schema  # noqa: B018 - as above
        except ConfigError as error:
            yield error
        if queue := self.originals.get("errors.deadletterqueue.topic.name"):
            reason = "The Spark sink has no dead letter queue: remove the key. errors.tolerance=all logs bad records."
            yield ConfigError("errors.deadletterqueue.topic.name", queue, reason)
        known = ("DefaultPartitioner", "FieldPartitioner")
        if self.partitioner not in known:
            reason = f"The Spark sink has {' and '.join(known)}; use one of them."
            yield ConfigError("partitioner.class", self.partitioner_class, reason)
        if self.partitioner == "FieldPartitioner" and not self.partition_field_name:
            reason = "FieldPartitioner needs the names of the fields to divide by."
            yield ConfigError("partition.field.name", "", reason)

    @property
    def store(self) -> Path:
        """The folder that ``store.url`` names; :class:`~connect.errors.ConfigError` if it is not local."""
        try:
            url = urlsplit(self.store_url)
        except ValueError:
            # The reason quotes what it does not understand, which may be a key: it is not chained.
            raise ConfigError("store.url", shown_url(self.store_url), "Its host is not valid: use a path.") from None
        if url.scheme not in ("", "file") or url.netloc not in ("", "localhost"):
            reason = "This version writes to local folders: use a path or a file: URL."
            raise ConfigError("store.url", shown_url(self.store_url), reason)
        return Path(unquote(url.path) if url.scheme else self.store_url).absolute()

    @property
    def partitioner(self) -> str:
        """The simple name of the partitioner."""
        return self.partitioner_class.rpartition(".")[2]

    @property
    def first_schema(self) -> Schema | None:
        """The initial schema of tables, if one is given."""
        if self.value_schema is None:
            return None
        try:
            schema = schema_from_json(json.loads(self.value_schema))
        except (ValueError, SchemaError) as error:
            raise ConfigError("value.schema", self.value_schema, str(error)) from error
        if schema.type is not Type.STRUCT:
            raise ConfigError("value.schema", self.value_schema, "The schema of a table must be a struct.")
        return table_schema(schema)
