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
from connectors.jdbc.config import ConnectionConfig
from connectors.jdbc.connection import dialect_of
from connectors.jdbc.dialects.values import parse_zone
from connectors.jdbc.drivers import missing_package

__all__ = ["Delivery", "InsertMode", "JdbcSinkConfig", "KeyMode", "NestedValues"]

_WRITING: Final = "Writing"
_MAPPING: Final = "Data mapping"
_TABLES: Final = "Tables"
_RETRIES: Final = "Retries"
_KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")


class InsertMode(StrEnum):
    """What becomes of a record whose row may be there already."""

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
    """What becomes of structs, arrays and maps within a value."""

    FAIL = "fail"
    FLATTEN = "flatten"
    JSON = "json"


class Delivery(StrEnum):
    """How often a record may be written when the task is killed."""

    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@validator("time zone, such as UTC, Europe/Berlin or +02:00")
def _time_zone(key: str, value: str) -> None:
    try:
        parse_zone(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


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
        "adds one. update changes rows that are there, and adds none.",
    )
    delete_enabled: bool = option(
        default=False,
        importance=MEDIUM,
        group=_WRITING,
        doc="Whether a record without a value deletes the row of its key. Requires pk.mode=record_key.",
    )
    delivery: Delivery = option(
        default=Delivery.AT_LEAST_ONCE,
        importance=MEDIUM,
        group=_WRITING,
        doc="at-least-once: after a crash some records are written again. exactly-once: the offsets of the records "
        "are kept in a table of the database, in the transaction that writes them, and consuming continues there.",
    )
    offsets_table: str = option(
        default="sluice_offsets",
        importance=LOW,
        validator=non_empty,
        group=_WRITING,
        doc="The table for the offsets of delivery=exactly-once; it is created. Connectors may share it.",
    )
    batch_size: int = option(
        default=3000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_WRITING,
        doc="Most records in one transaction, as far as they come that fast. What has come is written after a tenth of "
        "a second in any case. 0 writes each batch that is consumed by itself.",
    )
    table_name_format: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=non_empty,
        group=_TABLES,
        doc="The name of the table. ${topic} stands for the topic, ${field} for the text of table.name.field. It may "
        "be schema.${topic}; a dot in the name of a topic divides it into schema and table.",
    )
    table_name_field: str = option(
        default="",
        importance=MEDIUM,
        group=_TABLES,
        doc="The field of the value, or of the key of a record without a value, whose text is the name of the table, "
        "or the part ${field} of table.name.format.",
    )
    table_name_normalize: bool = option(
        default=False,
        importance=LOW,
        group=_TABLES,
        doc="Whether characters of a topic, and of table.name.field, other than a-z, A-Z, 0-9 and _ become _.",
    )
    topics_to_tables_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_table_mapping,
        group=_TABLES,
        doc="Tables of topics as topic:table, with commas between them. Other topics go by table.name.format.",
    )
    table_types: tuple[Literal["TABLE", "PARTITIONED TABLE", "VIEW"], ...] = option(
        default=("TABLE",),
        importance=LOW,
        ignore_case=True,
        group=_TABLES,
        doc="The types of tables that may be written to.",
    )
    auto_create: bool = option(
        default=False,
        importance=MEDIUM,
        group=_TABLES,
        doc="Whether a table that is missing is created, from the schemas of the records.",
    )
    auto_evolve: bool = option(
        default=False,
        importance=MEDIUM,
        group=_TABLES,
        doc="Whether columns that are missing are added, of fields that are optional or have a default. Columns are "
        "never changed or dropped.",
    )
    pk_mode: KeyMode = option(
        default=KeyMode.NONE,
        importance=HIGH,
        ignore_case=True,
        group=_MAPPING,
        doc="The primary key of rows: none; kafka, the topic, partition and offset of the record; record_key, the key "
        "or fields of it; record_value, fields of the value.",
    )
    pk_fields: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_MAPPING,
        doc="The fields of the primary key. kafka: the names of three columns, by default __connect_topic, "
        "__connect_partition and __connect_offset. record_key: fields of the key, by default all; the name of the "
        "column if the key is a single value. record_value: fields of the value, by default all.",
    )
    fields_whitelist: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_MAPPING,
        doc="The fields of the value to write; if empty, all. The primary key is always written.",
    )
    nested_values: NestedValues = option(
        default=NestedValues.FAIL,
        importance=MEDIUM,
        group=_MAPPING,
        doc="What becomes of structs, arrays and maps in a value. fail: they are refused, but for arrays in "
        "PostgreSQL. flatten: each field of a struct becomes a column, arrays and maps JSON. json: they become JSON.",
    )
    nested_delimiter: str = option(
        default="_",
        importance=LOW,
        validator=non_empty,
        group=_MAPPING,
        doc="Stands between the names of fields that nested.values=flatten joins.",
    )
    replace_null_with_default: bool = option(
        default=True,
        importance=LOW,
        group=_MAPPING,
        doc="Whether null in a field whose schema has a default is written as that default.",
    )
    string_output_value_column_name: str = option(
        default="record_value",
        importance=LOW,
        validator=non_empty,
        group=_MAPPING,
        doc="The column for values that are texts and no structs.",
    )
    timestamp_fields_list: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        group=_MAPPING,
        doc="Fields of the value, whole numbers since the epoch or texts of them, that are written as timestamps.",
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
        validator=_time_zone,
        group=_MAPPING,
        doc="The time zone in which timestamps are written to columns that have none.",
    )
    max_retries: int = option(
        default=10,
        importance=MEDIUM,
        validator=at_least(0),
        group=_RETRIES,
        doc="How many times in a row to try again after an error that may pass, before the task fails.",
    )
    retry_backoff_ms: int = option(
        default=3000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_RETRIES,
        doc="How long to wait before it is tried again.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several keys that is broken."""
        yield from super().check()
        yield from self._check_database()
        yield from self._check_keys()
        yield from self._check_tables()

    def _check_database(self) -> Iterable[ConfigError]:
        from connectors.jdbc.sink.writers import writer_class  # noqa: PLC0415 - writers need this module

        try:
            if missing_package(self.address.driver) is not None:
                return
            dialect = dialect_of(self)
        except (ValueError, LookupError):
            # What is wrong has been told with the other options of the connection.
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
        """The tables of topics that are mapped one by one."""
        pairs: list[Any] = [item.split(":", 1) for item in self.topics_to_tables_mapping]
        return dict(pairs)

    @property
    def exactly_once(self) -> bool:
        """Whether offsets are kept beside the rows."""
        return self.delivery is Delivery.EXACTLY_ONCE
