"""The options of the JDBC sink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    at_least,
    invalid_value,
    non_empty,
    option,
    validator,
)
from connect.errors import ConfigError
from connect.kits.sql.registry import missing_package, writer_class
from connectors.jdbc.config import ConnectionConfig, check_zone

__all__ = ["Delivery", "InsertMode", "JdbcSinkConfig", "KeyMode", "NestedValues"]

_WRITING: Final = "Writing"
_MAPPING: Final = "Data mapping"
_TABLES: Final = "Tables"
_RETRIES: Final = "Retries"
_KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")


class InsertMode(StrEnum):
    """How to write a record whose row may already exist."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class KeyMode(StrEnum):
    """Where the primary key of a row comes from."""

    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


class NestedValues(StrEnum):
    """What to do with structs, arrays and maps within a value."""

    FAIL = "fail"
    FLATTEN = "flatten"
    JSON = "json"


class Delivery(StrEnum):
    """How often a record may be written if the task is killed."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@validator("list of topic:table")
def _table_mapping(key: str, value: tuple[str, ...]) -> None:
    for item in value:
        topic, colon, table = item.partition(":")
        if not (topic and colon and table):
            raise invalid_value(key, item, "Write each topic and its table as topic:table")


class JdbcSinkConfig(ConnectionConfig):
    """Where and how to write."""

    insert_mode: InsertMode = option(
        default=InsertMode.INSERT,
        importance=HIGH,
        ignore_case=True,
        group=_WRITING,
        doc="insert adds a row for each record. upsert replaces the fields of the row with the same primary key, or "
        "adds a row. update changes existing rows only.",
    )
    delete_enabled: bool = option(
        default=False,
        importance=MEDIUM,
        group=_WRITING,
        doc="Whether a record without a value (tombstone) deletes the row of its key. Requires pk.mode=record_key.",
    )
    delivery: Delivery = option(
        default=Delivery.AT_LEAST_ONCE,
        importance=MEDIUM,
        group=_WRITING,
        doc="at-least-once: some records are written again after a crash. exactly-once: the offsets are stored in a "
        "table of the database, in the same transaction as the records, and consumption continues from there.",
    )
    offsets_table: str = option(
        default="sluice_offsets",
        importance=LOW,
        validator=non_empty,
        group=_WRITING,
        doc="The table for the offsets of delivery=exactly-once, which is created if missing. Connectors may share it.",
    )
    batch_size: int = option(
        default=3000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_WRITING,
        doc="Maximum number of records per transaction. Records are written after a tenth of a second at the latest. "
        "With 0, each consumed batch is written in a transaction of its own.",
    )
    table_name_format: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=non_empty,
        group=_TABLES,
        doc="The table name. ${topic} stands for the topic, ${field} for the value of table.name.field. It may "
        "contain a schema, as in schema.${topic}; a dot in a topic name separates schema and table.",
    )
    table_name_field: str = option(
        default="",
        importance=MEDIUM,
        group=_TABLES,
        doc="The field whose string is the table name, or replaces ${field} in table.name.format: a field of the "
        "value, or of the key if the record has no value.",
    )
    table_name_normalize: bool = option(
        default=False,
        importance=LOW,
        group=_TABLES,
        doc="Whether to replace characters other than a-z, A-Z, 0-9 and _ in topic names and in table.name.field by _.",
    )
    topics_to_tables_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_table_mapping,
        group=_TABLES,
        doc="Tables of individual topics, as a comma-separated list of topic:table. Other topics follow "
        "table.name.format.",
    )
    table_types: tuple[Literal["TABLE", "PARTITIONED TABLE", "VIEW"], ...] = option(
        default=("TABLE",),
        importance=LOW,
        ignore_case=True,
        group=_TABLES,
        doc="The types of tables that the connector may write to.",
    )
    auto_create: bool = option(
        default=False,
        importance=MEDIUM,
        group=_TABLES,
        doc="Whether to create missing tables from the schemas of the records.",
    )
    auto_evolve: bool = option(
        default=False,
        importance=MEDIUM,
        group=_TABLES,
        doc="Whether to add missing columns, for fields that are optional or have a default. Columns are never "
        "changed or dropped.",
    )
    pk_mode: KeyMode = option(
        default=KeyMode.NONE,
        importance=HIGH,
        ignore_case=True,
        group=_MAPPING,
        doc="The primary key of rows. none: no primary key; kafka: topic, partition and offset of the record; "
        "record_key: the key or fields of it; record_value: fields of the value.",
    )
    pk_fields: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_MAPPING,
        doc="The fields of the primary key. kafka: the names of three columns, by default __connect_topic, "
        "__connect_partition and __connect_offset. record_key: fields of the key, by default all; for a primitive "
        "key, the name of the column. record_value: fields of the value, by default all.",
    )
    fields_whitelist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_MAPPING,
        doc="The fields of the value to write; all if empty. The primary key is always written.",
    )
    nested_values: NestedValues = option(
        default=NestedValues.FAIL,
        importance=MEDIUM,
        group=_MAPPING,
        doc="What to do with structs, arrays and maps in a value. fail: refuse them, except arrays in PostgreSQL. "
        "flatten: each field of a struct becomes a column; arrays and maps become JSON. json: all become JSON.",
    )
    nested_delimiter: str = option(
        default="_",
        importance=LOW,
        validator=non_empty,
        group=_MAPPING,
        doc="The separator in column names that nested.values=flatten builds from field names.",
    )
    replace_null_with_default: bool = option(
        default=True,
        importance=LOW,
        group=_MAPPING,
        doc="Whether to write the default of a field's schema in place of null.",
    )
    string_output_value_column_name: str = option(
        default="record_value",
        importance=LOW,
        validator=non_empty,
        group=_MAPPING,
        doc="The column for values that are strings instead of structs.",
    )
    timestamp_fields_list: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        group=_MAPPING,
        doc="Fields of the value that contain a time since the epoch, as an integer or a string of digits, to write "
        "as timestamps.",
    )
    timestamp_precision_mode: Literal["MICROSECONDS", "NANOSECONDS"] = option(
        default="MICROSECONDS",
        importance=LOW,
        ignore_case=True,
        group=_MAPPING,
        doc="The unit of the fields in timestamp.fields.list.",
    )
    db_timezone: str = option(
        default="UTC",
        importance=MEDIUM,
        validator=validator("time zone, such as UTC, Europe/Berlin or +02:00")(check_zone),
        group=_MAPPING,
        doc="The time zone for writing timestamps to columns without a time zone.",
    )
    max_retries: int = option(
        default=10,
        importance=MEDIUM,
        validator=at_least(0),
        group=_RETRIES,
        doc="How many times in a row to retry after a transient error before the task fails.",
    )
    retry_backoff_ms: int = option(
        default=3000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_RETRIES,
        doc="How long to wait before a retry, in milliseconds.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several keys."""
        yield from super().check()
        yield from self._check_database()
        yield from self._check_keys()
        yield from self._check_tables()

    def _check_database(self) -> Iterable[ConfigError]:
        try:
            if missing_package(self.address.driver) is not None:
                return
            dialect = self.dialect()
        except (ValueError, LookupError):
            # The error has already been reported with the other connection options.
            return
        try:
            writer_class(dialect.backend)
            dialect.table_id(self.offsets_table)
        except LookupError as error:
            yield ConfigRuleError(str(error), "connection.url")
        except ValueError as error:
            yield ConfigRuleError(f"Invalid value for configuration offsets.table: {error}", "offsets.table")

    def _check_keys(self) -> Iterable[ConfigError]:
        mode, fields = self.pk_mode, self.pk_fields
        if self.delete_enabled and mode is not KeyMode.RECORD_KEY:
            yield ConfigRuleError(
                "Primary key mode must be 'record_key' when delete support is enabled", "pk.mode", "delete.enabled"
            )
        if self.insert_mode is not InsertMode.INSERT and mode is KeyMode.NONE:
            yield ConfigRuleError(
                f"insert.mode={self.insert_mode} needs a primary key to find rows by: set pk.mode to record_key, "
                "record_value or kafka.",
                "pk.mode",
                "insert.mode",
            )
        if mode is KeyMode.KAFKA and len(fields) not in (0, len(_KAFKA_COLUMNS)):
            yield ConfigRuleError(
                f"With pk.mode=kafka, pk.fields is empty or names three columns, for topic, partition and offset; it "
                f"has {len(fields)}.",
                "pk.fields",
            )
        if repeated := {name for name in fields if fields.count(name) > 1}:
            yield ConfigRuleError(f"pk.fields names {min(repeated)} more than once.", "pk.fields")

    def _check_tables(self) -> Iterable[ConfigError]:
        names = set(_PLACEHOLDER.findall(self.table_name_format))
        if unknown := names - {"topic", "field"}:
            yield ConfigRuleError(
                f"table.name.format has ${{{min(unknown)}}}; only ${{topic}} and ${{field}} can be replaced.",
                "table.name.format",
            )
        if "field" in names and not self.table_name_field:
            yield ConfigRuleError(
                "table.name.format has ${field}: say with table.name.field which field that is.", "table.name.field"
            )
        topics = [item.partition(":")[0] for item in self.topics_to_tables_mapping]
        if repeated := {topic for topic in topics if topics.count(topic) > 1}:
            yield ConfigRuleError(
                f"topics.to.tables.mapping has the topic {min(repeated)} more than once.", "topics.to.tables.mapping"
            )

    @property
    def kafka_columns(self) -> tuple[str, str, str]:
        """The columns of topic, partition and offset with ``pk.mode=kafka``."""
        topic, partition, offset = self.pk_fields or _KAFKA_COLUMNS
        return topic, partition, offset

    @property
    def mapped_tables(self) -> Mapping[str, str]:
        """The tables of the topics in topics.to.tables.mapping."""
        pairs: list[Any] = [item.split(":", 1) for item in self.topics_to_tables_mapping]
        return dict(pairs)

    @property
    def exactly_once(self) -> bool:
        """Whether offsets are stored in the database."""
        return self.delivery is Delivery.EXACTLY_ONCE
