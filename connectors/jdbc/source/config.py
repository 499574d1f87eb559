"""The options of the JDBC source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    invalid_value,
    option,
    validator,
)
from connect.errors import ConfigError
from connect.kits.sql.column import TableId
from connect.kits.sql.dialect import Dialect
from connect.kits.sql.values import NumericMapping, TimestampGranularity, TypeOptions, parse_zone
from connectors.jdbc.config import ConnectionConfig, check_zone
from connectors.jdbc.source.tables import TableFilter, column_mapping, has_topic_form, table_regexes

__all__ = ["FILTERS", "Isolation", "JdbcSourceConfig", "JdbcTaskConfig", "LateCommits", "Mode"]

FILTERS: Final = ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list")
_NAMES: Final = re.compile(r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^,"`])+')
_KEYS_AUTO: Final = ("auto",)


class Mode(StrEnum):
    """Which rows to read when a table is polled again."""

    BULK = "bulk"
    TIMESTAMP = "timestamp"
    INCREMENTING = "incrementing"
    TIMESTAMP_INCREMENTING = "timestamp+incrementing"

    @property
    def has_timestamp(self) -> bool:
        """Whether rows are identified by a time."""
        return self in (Mode.TIMESTAMP, Mode.TIMESTAMP_INCREMENTING)

    @property
    def has_incrementing(self) -> bool:
        """Whether rows are identified by an increasing number."""
        return self in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)


class Isolation(StrEnum):
    """The isolation level of reading transactions."""

    DEFAULT = "DEFAULT"
    READ_UNCOMMITTED = "READ_UNCOMMITTED"
    READ_COMMITTED = "READ_COMMITTED"
    REPEATABLE_READ = "REPEATABLE_READ"
    SERIALIZABLE = "SERIALIZABLE"


class LateCommits(StrEnum):
    """What to do about transactions that may still add rows before the visible ones."""

    WAIT = "wait"
    IGNORE = "ignore"


@validator("letters, digits, '.', '_' and '-', at most 249")
def _topic_prefix(key: str, value: str) -> None:
    if value and not has_topic_form(value):
        raise invalid_value(key, value, "Topic names consist of at most 249 letters, digits, '.', '_' and '-'")


@validator("list of valid regexes")
def _regexes(key: str, value: tuple[str, ...]) -> None:
    try:
        table_regexes(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


@validator("list of REGEX:COLUMN or REGEX:[COLUMN|COLUMN]")
def _mapping(key: str, value: tuple[str, ...]) -> None:
    try:
        column_mapping(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


class JdbcSourceConfig(ConnectionConfig):
    """The options of the JDBC source."""

    mode: Mode = option(
        importance=HIGH,
        doc="Which rows to read when a table is polled again. bulk: all of them. incrementing: those with a greater "
        "number in a strictly increasing column. timestamp: those with a later time, including updated rows. "
        "timestamp+incrementing: both columns identify rows, which is exact even if many rows have the same time.",
    )
    incrementing_column_name: str = option(
        default="",
        importance=MEDIUM,
        doc="The strictly increasing column. If empty, the table's auto-increment column.",
    )
    incrementing_column_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_mapping,
        doc="The strictly increasing column by table, as REGEX:COLUMN with a regular expression for the full table "
        "name.",
    )
    timestamp_column_name: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The column with the time of a row's last change. Of several columns, the first that is not null counts.",
    )
    timestamp_columns_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_mapping,
        doc="The timestamp columns by table, as REGEX:[COLUMN|COLUMN] with a regular expression for the full table "
        "name.",
    )
    timestamp_initial: Long | None = option(
        default=None,
        importance=LOW,
        validator=at_least(-1),
        doc="The time from which rows are read initially, in milliseconds since 1970; -1 is the time of the start. By "
        "default all rows since 1970 are read.",
    )
    timestamp_delay_interval_ms: Long = option(
        default=0,
        importance=HIGH,
        validator=at_least(0),
        doc="How old a row must be, according to its timestamp, before it is read, so that transactions that began "
        "earlier can finish.",
    )
    late_commits: LateCommits = option(
        default=LateCommits.WAIT,
        importance=MEDIUM,
        doc="What to do about running transactions that may still add rows before the visible ones. wait: on "
        "PostgreSQL, rows are read only after the transactions that could add earlier rows have ended. ignore: "
        "such rows are missed, as in the Java connector, unless timestamp.delay.interval.ms is long enough. No "
        "effect on other databases.",
    )
    validate_non_null: bool = option(
        default=True,
        importance=LOW,
        doc="Whether to require that the incrementing column, and at least one of the timestamp columns, is NOT NULL. "
        "Rows with null there are never read.",
    )
    query: str = option(
        default="",
        importance=MEDIUM,
        doc="A query to read in place of tables. Unless mode=bulk, the condition for new rows is appended, so the "
        "query must not have a WHERE clause: write it as SELECT * FROM (SELECT ...) AS rows.",
    )
    query_masked: Password | None = option(
        default=None, importance=MEDIUM, doc="Alternative to query, for a query that must not be shown."
    )
    query_suffix: str = option(default="", importance=LOW, doc="Text to append to every query, such as a hint.")
    query_retry_attempts: int = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        doc="How many times in a row to retry reading a table after a transient error; -1 means forever.",
    )
    transaction_isolation_mode: Isolation = option(
        default=Isolation.DEFAULT,
        importance=LOW,
        ignore_case=True,
        doc="The isolation level of reading transactions; by default the database's.",
    )
    table_whitelist: tuple[str, ...] = option(
        default=(), importance=MEDIUM, doc="The tables to read, by their names, such as accounts or public.accounts."
    )
    table_blacklist: tuple[str, ...] = option(
        default=(), importance=MEDIUM, doc="The tables to exclude, by their names; all others are read."
    )
    table_include_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_regexes,
        doc="Regular expressions for the full names of the tables to read, such as public\\.acc.*.",
    )
    table_exclude_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_regexes,
        doc="Regular expressions for the full names of tables to exclude from those of table.include.list.",
    )
    catalog_pattern: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Pattern with % and _ for the catalogs (in MySQL, the databases) whose tables are read; by default that "
        "of the connection.",
    )
    schema_pattern: str | None = option(
        default=None,
        importance=HIGH,
        doc="Pattern with % and _ for the schemas whose tables are read; by default all.",
    )
    table_types: tuple[str, ...] = option(
        default=("TABLE",),
        importance=LOW,
        doc="The types of tables to read: TABLE, VIEW and, in PostgreSQL, MATERIALIZED VIEW.",
    )
    table_poll_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        doc="How often to check for new and dropped tables, in milliseconds. After a change, tables are redistributed "
        "among the tasks.",
    )
    table_monitoring_startup_polling_limit_ms: Long = option(
        default=10_000,
        importance=LOW,
        internal=True,
        validator=at_least(0),
        doc="How long to wait for the first list of tables, in milliseconds.",
    )
    poll_interval_ms: int = option(
        default=5000,
        importance=HIGH,
        validator=at_least(1),
        doc="How often to poll each table for new rows, in milliseconds.",
    )
    batch_max_rows: int = option(
        default=1000, importance=LOW, validator=at_least(1), doc="Maximum number of rows per poll."
    )
    topic_prefix: str = option(
        default="",
        importance=HIGH,
        validator=_topic_prefix,
        doc="Prefix of topic names, followed by the table name. With a query, the whole topic name.",
    )
    key_columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The columns of the record key, which is a struct; auto uses the primary key of each table. By default "
        "records have no key.",
    )
    numeric_mapping: NumericMapping | None = option(
        default=None,
        importance=LOW,
        ignore_case=True,
        doc="How to map NUMERIC columns. none: to Decimal; precision_only: to integers if they have no fraction and "
        "fit; best_fit: also to floating point numbers if they have at most 18 digits; best_fit_eager_double: to "
        "floating point numbers whenever they have a fraction.",
    )
    numeric_precision_mapping: bool = option(
        default=False,
        importance=LOW,
        doc="Older form of numeric.mapping=precision_only, used if numeric.mapping is not set.",
    )
    timestamp_granularity: TimestampGranularity = option(
        default=TimestampGranularity.CONNECT_LOGICAL,
        importance=LOW,
        ignore_case=True,
        doc="How to map timestamps. connect_logical: to Connect's Timestamp, with milliseconds; micros_... and "
        "nanos_...: to integers (long) or strings (string) since 1970, or to ISO 8601 strings such as "
        "2013-01-01T05:15:00.000000.",
    )
    db_timezone: str = option(
        default="UTC",
        importance=MEDIUM,
        validator=validator("time zone, such as UTC or Europe/Berlin")(check_zone),
        doc="The time zone of database times without a time zone.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        yield from self._check_query()
        yield from self._check_filters()
        yield from self._check_columns()

    @property
    def type_options(self) -> TypeOptions:
        """How to read values."""
        old = NumericMapping.PRECISION_ONLY if self.numeric_precision_mapping else NumericMapping.NONE
        return TypeOptions(self.numeric_mapping or old, self.timestamp_granularity, parse_zone(self.db_timezone))

    @property
    def statement(self) -> str:
        """The query to read in place of tables; empty if tables are read."""
        return (self.query_masked.value if self.query_masked is not None else self.query).strip().rstrip(";")

    @property
    def table_filter(self) -> TableFilter:
        """Which tables to read."""
        return TableFilter(self.table_whitelist, self.table_blacklist, self.table_include_list, self.table_exclude_list)

    @property
    def takes_primary_key(self) -> bool:
        """Whether the record key is the table's primary key."""
        return self.key_columns == _KEYS_AUTO

    def _check_query(self) -> Iterable[ConfigError]:
        if self.query and self.query_masked is not None:
            yield ConfigRuleError("Set query or query.masked, not both", "query", "query.masked")
        key = "query" if self.query else "query.masked"
        statement = self.statement
        if not statement:
            return
        if statement[:7].upper().split()[:1] not in (["SELECT"], ["WITH"]):
            yield ConfigRuleError(f"{key} must begin with SELECT or WITH", key)
        used = [name for name in FILTERS if getattr(self, name.replace(".", "_"))]
        if used:
            yield ConfigRuleError(f"Do not set {' and '.join(used)} with {key}: only the query is read", *used, key)
        if not self.topic_prefix:
            yield ConfigRuleError("With a query, topic.prefix is the name of the topic: set it", "topic.prefix")
        if self.takes_primary_key:
            yield ConfigRuleError("A query has no primary key: name the columns in key.columns", "key.columns")

    def _check_filters(self) -> Iterable[ConfigError]:
        if self.table_whitelist and self.table_blacklist:
            yield ConfigRuleError(
                "Set table.whitelist or table.blacklist, not both", "table.whitelist", "table.blacklist"
            )
        if (self.table_whitelist or self.table_blacklist) and (self.table_include_list or self.table_exclude_list):
            yield ConfigRuleError(
                "Set table.whitelist or table.blacklist, or table.include.list with table.exclude.list, not both kinds",
                *FILTERS,
            )
        if self.table_exclude_list and not self.table_include_list:
            yield ConfigRuleError(
                "table.exclude.list takes tables from table.include.list: set that too, to .* for all",
                "table.exclude.list",
            )

    def _check_columns(self) -> Iterable[ConfigError]:
        has_names = bool(self.timestamp_column_name)
        if self.mode.has_timestamp and not has_names and not self.timestamp_columns_mapping:
            yield ConfigRuleError(
                f"mode={self.mode} needs timestamp.column.name or timestamp.columns.mapping",
                "timestamp.column.name",
                "timestamp.columns.mapping",
            )
        for names, mapping in (
            ("timestamp.column.name", "timestamp.columns.mapping"),
            ("incrementing.column.name", "incrementing.column.mapping"),
        ):
            if getattr(self, names.replace(".", "_")) and getattr(self, mapping.replace(".", "_")):
                yield ConfigRuleError(f"Set {names} or {mapping}, not both", names, mapping)
        if self.statement and self.mode.has_incrementing and not self.incrementing_column_name:
            yield ConfigRuleError(
                "Of a query it is not known which column only grows: name it in incrementing.column.name",
                "incrementing.column.name",
            )
        if self.statement and self.mode.has_timestamp and not has_names:
            yield ConfigRuleError("With a query, name the column in timestamp.column.name", "timestamp.column.name")


class JdbcTaskConfig(JdbcSourceConfig):
    """The options of one task: those of the connector, and its share of the tables."""

    tables: str = option(default="[]", importance=LOW, internal=True, doc="The tables of this task as JSON.")
    split_after: Long = option(
        default=-1, importance=LOW, internal=True, doc="The number after which a split of a table begins."
    )
    split_last: Long | None = option(
        default=None, importance=LOW, internal=True, doc="The last number of a split of a table."
    )

    def table_ids(self, dialect: Dialect) -> list[TableId]:
        """Return the tables of this task; a Java worker's task config has their names separated by commas instead."""
        if self.tables.startswith("["):
            return [TableId(*parts) for parts in json.loads(self.tables)]
        found = [dialect.table_id(name) for name in _NAMES.findall(self.tables)]
        return [table if dialect.has_catalogs else replace(table, catalog="") for table in found]
