"""The options that decide how records become rows: which columns, of which types, under which names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from connect.config import LOW, MEDIUM, Config, non_empty, option
from connect.errors import ConfigError
from connectors.spark.schema import Evolution, KafkaColumns

__all__ = ["RecordOptions"]

_RECORDS = "Records"


class RecordOptions(Config):
    """The options of rows, under the names of the storage sinks where they have them."""

    value_schema: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_RECORDS,
        doc=(
            "The initial schema of tables, as JSON in the form of JsonConverter's envelopes. Without it, the "
            "first load derives the schema from its records."
        ),
    )
    behavior_on_null_values: Literal["fail", "ignore", "write"] = option(
        default="fail",
        importance=LOW,
        group=_RECORDS,
        doc=(
            "What to do with records without a value: fail (handled by errors.tolerance), ignore, or write "
            "rows of nulls."
        ),
    )
    schema_compatibility: Literal["NONE", "BACKWARD", "FORWARD", "FULL"] = option(
        default="NONE",
        importance=MEDIUM,
        group=_RECORDS,
        doc=(
            "How a table may change with its records. NONE, BACKWARD: new fields become columns, and types "
            "may widen. FULL: new fields become columns, types stay. FORWARD: the table never changes; new "
            "fields are left out."
        ),
    )
    schema_conflict: Literal["fail", "new-column", "rewrite"] = option(
        default="fail",
        importance=MEDIUM,
        group=_RECORDS,
        doc=(
            "What to do with values that their column cannot hold even if widened. fail: treat the record as "
            "bad (errors.tolerance). new-column: add a column named after the field and the type, such as "
            "price_float64. rewrite: for fractions in a column of whole numbers, rewrite all files of the "
            "table with the wider column, in the commit of the load."
        ),
    )
    field_name_adjustment_mode: Literal["none", "avro", "hive"] = option(
        default="none",
        importance=LOW,
        group=_RECORDS,
        doc=(
            "How to adjust field names for columns: none leaves them; avro replaces everything but letters, "
            "digits and _ with _, and puts one before a leading digit; hive also makes them lower case. "
            "Records with fields whose adjusted names collide are bad records."
        ),
    )
    store_kafka_keys: bool = option(
        default=False,
        importance=LOW,
        group=_RECORDS,
        doc="Whether to add a column with the records' keys, as key.converter reads them.",
    )
    store_kafka_keys_column: str = option(
        default="key",
        importance=LOW,
        validator=non_empty,
        group=_RECORDS,
        doc="The name of the column for keys.",
    )
    store_kafka_headers: bool = option(
        default=False,
        importance=LOW,
        group=_RECORDS,
        doc=(
            "Whether to add a column with the records' headers: a list of structs of key and value, in the "
            "order and with the bytes that they have on the topic."
        ),
    )
    store_kafka_headers_column: str = option(
        default="headers",
        importance=LOW,
        validator=non_empty,
        group=_RECORDS,
        doc="The name of the column for headers.",
    )
    store_kafka_metadata: bool = option(
        default=False,
        importance=LOW,
        group=_RECORDS,
        doc=(
            "Whether to add a column with the origin of each record: a struct of topic, partition, offset and "
            "timestamp."
        ),
    )
    store_kafka_metadata_column: str = option(
        default="kafka",
        importance=LOW,
        validator=non_empty,
        group=_RECORDS,
        doc="The name of the column for the origin.",
    )

    def record_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        names = [name for name in self.kafka_columns.names if name is not None]
        for name in sorted({name for name in names if names.count(name) > 1}):
            reason = "Two columns cannot have the same name: give each store.kafka.*.column key a different one."
            yield ConfigError("store.kafka.metadata.column", name, reason)

    @property
    def evolution(self) -> Evolution:
        """How tables change."""
        return Evolution.of(self.schema_compatibility, self.schema_conflict)

    @property
    def kafka_columns(self) -> KafkaColumns:
        """The columns that tables have in addition to those of the values."""
        return KafkaColumns(
            self.store_kafka_keys_column if self.store_kafka_keys else None,
            self.store_kafka_headers_column if self.store_kafka_headers else None,
            self.store_kafka_metadata_column if self.store_kafka_metadata else None,
        )
