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
from connectors.jdbc.config import ConnectionConfig
from connectors.jdbc.dialects.column import TableId
from connectors.jdbc.dialects.dialect import Dialect
from connectors.jdbc.dialects.values import NumericMapping, TimestampGranularity, TypeOptions, parse_zone
from connectors.jdbc.source.tables import TableFilter, column_mapping, table_regexes

__all__ = ["Isolation", "JdbcSourceConfig", "JdbcTaskConfig", "LateCommits", "Mode"]

_TOPIC_LENGTH: Final = 249
_FILTERS: Final = ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list")
_NAMES: Final = re.compile(r'(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^,"`])+')
_KEYS_AUTO: Final = ("auto",)


class Mode(StrEnum):
    """Which rows are read when a table is polled again."""

    BULK = "bulk"
    TIMESTAMP = "timestamp"
    INCREMENTING = "incrementing"
    TIMESTAMP_INCREMENTING = "timestamp+incrementing"

    @property
    def has_timestamp(self) -> bool:
        """Whether rows are told by a time."""
        return self in (Mode.TIMESTAMP, Mode.TIMESTAMP_INCREMENTING)

    @property
    def has_incrementing(self) -> bool:
        """Whether rows are told by a number that grows."""
        return self in (Mode.INCREMENTING, Mode.TIMESTAMP_INCREMENTING)


class Isolation(StrEnum):
    """The isolation of the transactions that read."""

    DEFAULT = "DEFAULT"
    READ_UNCOMMITTED = "READ_UNCOMMITTED"
    READ_COMMITTED = "READ_COMMITTED"
    REPEATABLE_READ = "REPEATABLE_READ"
    SERIALIZABLE = "SERIALIZABLE"


class LateCommits(StrEnum):
    """What to do about transactions that may still add rows before those that are visible."""

    WAIT = "wait"
    IGNORE = "ignore"


@validator("letters, digits, '.', '_' and '-', at most 249")
def _topic_prefix(key: str, value: str) -> None:
    legal = all(each.isascii() and (each.isalnum() or each in "._-") for each in value)
    if len(value) > _TOPIC_LENGTH or not legal:
        raise invalid_value(key, value, "Names of topics have at most 249 letters, digits, '.', '_' and '-'")


@validator("time zone, such as UTC or Europe/Berlin")
def _time_zone(key: str, value: str) -> None:
    try:
        parse_zone(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


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
        doc="Which rows are read when a table is polled again. bulk: all of them. incrementing: those with a greater "
        "number in a column that only grows. timestamp: those with a later time, so updated rows too. "
        "timestamp+incrementing: both columns tell rows apart, which is exact where many rows have one time.",
    )
    incrementing_column_name: str = option(
        default="",
        importance=MEDIUM,
        doc="The column that only grows. If empty, the column of the table that the database numbers by itself.",
    )
    incrementing_column_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_mapping,
        doc="The same for each table: REGEX:COLUMN, the regular expression for the full name of the table.",
    )
    timestamp_column_name: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The column that tells when a row was changed. Of several the first that is not null counts.",
    )
    timestamp_columns_mapping: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_mapping,
        doc="The same for each table: REGEX:[COLUMN|COLUMN], the regular expression for the full name of the table.",
    )
    timestamp_initial: Long | None = option(
        default=None,
        importance=LOW,
        validator=at_least(-1),
        doc="The time after which rows are read at first, in milliseconds since 1970; -1 is the time of the start. By "
        "default all rows since 1970 are read.",
    )
    timestamp_delay_interval_ms: Long = option(
        default=0,
        importance=HIGH,
        validator=at_least(0),
        doc="How old a row must be by its time before it is read, so that transactions that began earlier can end.",
    )
    late_commits: LateCommits = option(
        default=LateCommits.WAIT,
        importance=MEDIUM,
        doc="What to do about transactions under way that may still add rows before those that can be seen. wait: on "
        "PostgreSQL rows are read once the transactions that could add earlier ones have ended. ignore: such rows are "
        "missed, as in the Java connector, unless timestamp.delay.interval.ms is long enough. No effect elsewhere.",
    )
    validate_non_null: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the incrementing column, and at least one of the timestamp columns, must be NOT NULL. Rows with "
        "null there are never read.",
    )
    query: str = option(
        default="",
        importance=MEDIUM,
        doc="A query to read instead of tables. Unless mode=bulk, the condition for new rows is appended to it, so it "
        "may have no WHERE of its own: write it as SELECT * FROM (SELECT ...) AS rows.",
    )
    query_masked: Password | None = option(
        default=None, importance=MEDIUM, doc="The same as query, for a query that must not be shown."
    )
    query_suffix: str = option(default="", importance=LOW, doc="Text to append to every query, such as a hint.")
    query_retry_attempts: int = option(
        default=-1,
        importance=LOW,
        validator=at_least(-1),
        doc="How many times in a row to try again to read a table after an error that may pass; -1 is without end.",
    )
    transaction_isolation_mode: Isolation = option(
        default=Isolation.DEFAULT,
        importance=LOW,
        ignore_case=True,
        doc="The isolation of the transactions that read; by default that of the database.",
    )
    table_whitelist: tuple[str, ...] = option(
        default=(), importance=MEDIUM, doc="The tables to read, by their names, such as accounts or public.accounts."
    )
    table_blacklist: tuple[str, ...] = option(
        default=(), importance=MEDIUM, doc="The tables not to read, by their names; all others are read."
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
        doc="Regular expressions for the full names of tables not to read among those of table.include.list.",
    )
    catalog_pattern: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="Pattern for the catalogs (in MySQL the databases) whose tables are read, with % and _. By default "
        "those of the connection.",
    )
    schema_pattern: str | None = option(
        default=None,
        importance=HIGH,
        doc="Pattern for the schemas whose tables are read, with % and _; by default all.",
    )
    table_types: tuple[str, ...] = option(
        default=("TABLE",), importance=LOW, doc="What is read: TABLE, VIEW and, in PostgreSQL, MATERIALIZED VIEW."
    )
    table_poll_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        doc="How often to look for new and dropped tables, which are shared among the tasks anew.",
    )
    table_monitoring_startup_polling_limit_ms: Long = option(
        default=10_000,
        importance=LOW,
        internal=True,
        validator=at_least(0),
        doc="How long to wait for the first list of tables.",
    )
    poll_interval_ms: int = option(
        default=5000, importance=HIGH, validator=at_least(1), doc="How often to poll each table for new rows."
    )
    batch_max_rows: int = option(default=1000, importance=LOW, validator=at_least(1), doc="Most rows in one poll.")
    topic_prefix: str = option(
        default="",
        importance=HIGH,
        validator=_topic_prefix,
        doc="What the names of topics begin with; the name of the table follows. With a query, the whole name.",
    )
    key_columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="The columns that make the key of records, as a struct; auto takes the primary key of each table. By "
        "default records have no key.",
    )
    numeric_mapping: NumericMapping | None = option(
        default=None,
        importance=LOW,
        ignore_case=True,
        doc="What NUMERIC columns become: none: Decimal; precision_only: integers if they have no fraction and fit; "
        "best_fit: such integers and floating point numbers if they have at most 18 digits; best_fit_eager_double: "
        "floating point numbers whenever they have a fraction.",
    )
    numeric_precision_mapping: bool = option(
        default=False, importance=LOW, doc="Old form of numeric.mapping=precision_only, used if that is not set."
    )
    timestamp_granularity: TimestampGranularity = option(
        default=TimestampGranularity.CONNECT_LOGICAL,
        importance=LOW,
        ignore_case=True,
        doc="What times with dates become: connect_logical: Connect's Timestamp, which has milliseconds; micros_... "
        "and nanos_...: whole numbers (long) or text (string) since 1970, or text such as 2013-01-01T05:15:00.000000.",
    )
    db_timezone: str = option(
        default="UTC",
        importance=MEDIUM,
        validator=_time_zone,
        doc="The time zone of the times in the database that have none.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each rule over several options that is broken."""
        yield from super().check()
        yield from self._check_query()
        yield from self._check_filters()
        yield from self._check_columns()

    @property
    def type_options(self) -> TypeOptions:
        """How values are read."""
        old = NumericMapping.PRECISION_ONLY if self.numeric_precision_mapping else NumericMapping.NONE
        return TypeOptions(self.numeric_mapping or old, self.timestamp_granularity, parse_zone(self.db_timezone))

    @property
    def statement(self) -> str:
        """The query that is read instead of tables; empty if tables are read."""
        return (self.query_masked.value if self.query_masked is not None else self.query).strip().rstrip(";")

    @property
    def table_filter(self) -> TableFilter:
        """Which tables are read."""
        return TableFilter(self.table_whitelist, self.table_blacklist, self.table_include_list, self.table_exclude_list)

    @property
    def takes_primary_key(self) -> bool:
        """Whether the key of records is the primary key."""
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
        used = [name for name in _FILTERS if getattr(self, name.replace(".", "_"))]
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
                *_FILTERS,
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

    tables: str = option(default="[]", importance=LOW, internal=True, doc="The tables of this task, as JSON.")
    split_after: Long = option(
        default=-1, importance=LOW, internal=True, doc="The number after which a split of a table begins."
    )
    split_last: Long | None = option(
        default=None, importance=LOW, internal=True, doc="The last number of a split of a table."
    )

    def table_ids(self, dialect: Dialect) -> list[TableId]:
        """The tables of this task; a worker of Java that was taken over has left their names with commas between."""
        if self.tables.startswith("["):
            return [TableId(*parts) for parts in json.loads(self.tables)]
        found = [dialect.table_id(name) for name in _NAMES.findall(self.tables)]
        return [table if dialect.has_catalogs else replace(table, catalog="") for table in found]
