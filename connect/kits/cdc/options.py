"""The options that change data capture connectors share, under Debezium's keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    invalid_value,
    matches,
    one_of,
    option,
    validator,
)
from connect.data import Offset
from connect.errors import ConfigError
from connect.internals.java.regex import valid_java_regex
from connect.kits.cdc.filters import (
    ColumnRules,
    KeyRules,
    NameFilter,
    java_regex_list,
    key_columns_list,
    masks_of,
    name_patterns,
)
from connect.kits.cdc.numbers import BinaryHandlingMode, DecimalHandlingMode
from connect.kits.cdc.table_schemas import ConversionFailureMode
from connect.kits.cdc.temporal import TimePrecisionMode
from connect.kits.cdc.topics import STRATEGIES, NameAdjustmentMode, TopicNaming, TopicRouting
from connect.kits.cdc.transactions import TransactionMetadata
from connect.kits.cdc.unsupported_keys import DEBEZIUM_KEYS, unsupported_key_errors, unsupported_key_warnings

__all__ = ["CdcConfig", "RelationalConfig"]

_REGEX_STRATEGIES: Final = STRATEGIES[2:]
_KEY_FIELD: Final = "__dbz__physicalTableIdentifier"
_OVERRIDE: Final = "snapshot.select.statement.overrides."


@validator("letters, digits, dots, hyphens and underscores", refuse_null="topic.prefix is needed")
def _prefix(key: str, value: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", value):
        raise invalid_value(key, value, "Only letters, digits, dots, hyphens and underscores are allowed in it")


class CdcConfig(Config):
    """The options of all databases."""

    passed_keys: ClassVar[tuple[str, ...]] = ("signal.consumer.", *DEBEZIUM_KEYS)

    topic_prefix: str = option(
        importance=HIGH,
        validator=_prefix,
        doc="First part of the names of all topics, and the logical name of the database. Never change it: the offsets "
        "belong to it.",
    )
    max_batch_size: int = option(
        default=2048, importance=MEDIUM, validator=at_least(1), doc="Most records that are passed on at once."
    )
    tombstones_on_delete: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether the event of a deletion is followed by a tombstone, with which compaction removes the key.",
    )
    skipped_operations: tuple[Literal["c", "u", "d", "t", "none"], ...] = option(
        default=("t",),
        importance=LOW,
        doc="Operations whose events are left out: c for inserts, u for updates, d for deletions, t for truncations; "
        "none for none.",
    )
    skip_messages_without_change: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether updates that change none of the captured columns are left out. Needs the whole row before "
        "the update.",
    )
    provide_transaction_metadata: bool = option(
        default=False,
        importance=LOW,
        doc="Whether each event tells its transaction and its place in it, and the beginnings and ends of transactions "
        "are published too.",
    )
    unavailable_value_placeholder: str = option(
        default="__debezium_unavailable_value",
        importance=MEDIUM,
        doc="What stands for a value that the database has not sent because it did not change.",
    )
    event_converting_failure_handling_mode: ConversionFailureMode = option(
        default=ConversionFailureMode.WARN,
        importance=MEDIUM,
        ignore_case=True,
        doc="What happens when a value does not fit its schema, such as the date infinity under "
        "time.precision.mode=connect: fail fails the task, warn sends null and logs a warning, skip sends null. A "
        "column that must not be null fails the task in any case.",
    )
    binary_handling_mode: BinaryHandlingMode = option(
        default=BinaryHandlingMode.BYTES,
        importance=LOW,
        ignore_case=True,
        doc="How binary values are sent: as bytes, or as text.",
    )
    schema_name_adjustment_mode: NameAdjustmentMode = option(
        default=NameAdjustmentMode.NONE,
        importance=LOW,
        ignore_case=True,
        doc="How names of schemas are adjusted to Avro: avro replaces what it does not allow by an underscore, "
        "avro_unicode by the character's number (_u002d).",
    )
    field_name_adjustment_mode: NameAdjustmentMode = option(
        default=NameAdjustmentMode.NONE,
        importance=LOW,
        ignore_case=True,
        doc="How names of fields are adjusted to Avro, likewise.",
    )
    heartbeat_interval_ms: int = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Milliseconds between two heartbeats; none if 0. The position in the log moves on without them.",
    )
    heartbeat_topics_prefix: str = option(
        default="__debezium-heartbeat",
        importance=LOW,
        doc="First part of the name of the topic of heartbeats; topic.prefix is the second. Older name of "
        "topic.heartbeat.prefix.",
    )
    topic_heartbeat_prefix: str = option(
        default="",
        importance=LOW,
        doc="First part of the name of the topic of heartbeats; by default heartbeat.topics.prefix.",
    )
    topic_heartbeat_name: str = option(
        default="", importance=LOW, doc="Whole name of the topic of heartbeats, in place of the two parts."
    )
    topic_transaction: str = option(
        default="transaction", importance=LOW, doc="Last part of the name of the topic of transactions."
    )
    topic_delimiter: str = option(
        default=".",
        importance=LOW,
        validator=matches(r"[a-zA-Z0-9._-]*"),
        doc="What separates the parts of a topic's name.",
    )
    topic_naming_strategy: str = option(
        default=STRATEGIES[0],
        importance=MEDIUM,
        validator=one_of(*STRATEGIES),
        doc="How topics are named: PREFIX.SCHEMA.TABLE, PREFIX.DATABASE.SCHEMA.TABLE, or these rewritten by "
        "topic.regex.",
    )
    topic_regex: str = option(
        default="",
        importance=LOW,
        validator=valid_java_regex,
        doc="For the strategies by regular expression: expression for whole names of topics to be rewritten.",
    )
    topic_replacement: str = option(
        default="", importance=LOW, doc="What a name that topic.regex matches is replaced by, with $1 for its groups."
    )
    topic_key_enforce_uniqueness: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the keys of rewritten topics tell the table, since several tables may share the topic.",
    )
    topic_key_field_name: str = option(
        default=_KEY_FIELD, importance=LOW, doc="The field of keys that tells the table."
    )
    topic_key_field_regex: str = option(
        default="",
        importance=LOW,
        validator=valid_java_regex,
        doc="Expression for the topic's own name, to make the value of that field; by default the name is the value.",
    )
    topic_key_field_replacement: str = option(
        default="", importance=LOW, doc="What a name that topic.key.field.regex matches is replaced by."
    )
    extended_headers_enabled: bool = option(
        default=True, importance=LOW, doc="Whether records have the headers __debezium.context.*."
    )

    def transaction_metadata(self, partition: Offset) -> TransactionMetadata | None:
        """Return what tells of transactions, if that is wanted."""
        if not self.provide_transaction_metadata:
            return None
        return TransactionMetadata(self.naming().transaction_topic(), partition)

    def naming(self) -> TopicNaming:
        """Return how topics and schemas are named."""
        routing = None
        if self.topic_naming_strategy in _REGEX_STRATEGIES:
            field = self.topic_key_field_name if self.topic_key_enforce_uniqueness else None
            routing = TopicRouting.of(
                self.topic_regex,
                self.topic_replacement,
                field,
                self.topic_key_field_regex,
                self.topic_key_field_replacement,
            )
        return TopicNaming(
            self.topic_prefix,
            self.topic_delimiter,
            ".Default" in self.topic_naming_strategy,
            self.topic_transaction,
            self.topic_heartbeat_prefix or self.heartbeat_topics_prefix,
            self.topic_heartbeat_name,
            self.schema_name_adjustment_mode,
            self.field_name_adjustment_mode,
            routing,
        )

    def skipped(self) -> frozenset[str]:
        """Return the operations whose events are left out."""
        return frozenset(self.skipped_operations) - {"none"}

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for keys that contradict each other, and for those that cannot be honoured."""
        yield from unsupported_key_errors(self.originals)
        if self.topic_naming_strategy in _REGEX_STRATEGIES and not (self.topic_regex and self.topic_replacement):
            yield ConfigRuleError(
                f"{self.topic_naming_strategy} needs topic.regex and topic.replacement.",
                "topic.regex",
                "topic.replacement",
            )
        if "none" in self.skipped_operations and len(self.skipped_operations) > 1:
            yield ConfigRuleError(
                "none stands alone in skipped.operations: leave out the others.", "skipped.operations"
            )

    def warnings(self) -> Iterable[str]:
        """Yield a warning for each key that has no effect."""
        yield from unsupported_key_warnings(self.originals)


class RelationalConfig(CdcConfig):
    """The options of relational databases."""

    passed_keys: ClassVar[tuple[str, ...]] = (
        *CdcConfig.passed_keys,
        "column.mask.",
        "column.truncate.",
        _OVERRIDE,
    )

    database_hostname: str = option(importance=HIGH, doc="Host of the database.")
    database_user: str = option(importance=HIGH, doc="User to log in as.")
    database_password: Password | None = option(default=None, importance=HIGH, doc="Password of the user.")
    table_include_list: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=java_regex_list,
        doc="Regular expressions for the names of the tables to capture, such as public.orders; by default all.",
    )
    table_exclude_list: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=java_regex_list, doc="Regular expressions for tables not to capture."
    )
    column_include_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for columns to capture, such as public.orders.id; by default all. The columns of the "
        "key are always part of the key.",
    )
    column_exclude_list: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=java_regex_list, doc="Regular expressions for columns not to capture."
    )
    column_propagate_source_type: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for columns whose schema has their type, length, scale and name as parameters.",
    )
    datatype_propagate_source_type: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for types whose columns are treated so.",
    )
    message_key_columns: str = option(
        default="",
        importance=MEDIUM,
        validator=key_columns_list,
        doc="The columns that make the keys of records, in place of the tables' primary keys: "
        "TABLE:COLUMN,COLUMN;TABLE:COLUMN, with regular expressions for the tables.",
    )
    decimal_handling_mode: DecimalHandlingMode = option(
        default=DecimalHandlingMode.PRECISE,
        importance=MEDIUM,
        ignore_case=True,
        doc="How decimals are sent: precise as Connect's Decimal, string as text, double as a number that may be "
        "inexact.",
    )
    time_precision_mode: TimePrecisionMode = option(
        default=TimePrecisionMode.ADAPTIVE,
        importance=MEDIUM,
        ignore_case=True,
        doc="How dates and times are sent: adaptive in the column's precision, connect as Connect's types in "
        "milliseconds, isostring as text, microseconds and nanoseconds in these.",
    )
    include_schema_comments: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether comments of columns are part of the parameters of propagated types.",
    )
    guardrail_collections_max: int = option(
        default=0, importance=MEDIUM, validator=at_least(0), doc="Most tables to capture; any number if 0."
    )
    guardrail_collections_limit_action: Literal["warn", "fail"] = option(
        default="warn", importance=MEDIUM, ignore_case=True, doc="What happens when there are more tables than that."
    )
    snapshot_fetch_size: int = option(
        default=10_240, importance=MEDIUM, validator=at_least(1), doc="Rows that a snapshot requests at once."
    )
    snapshot_max_threads: int = option(
        default=1,
        importance=MEDIUM,
        validator=between(1, 64),
        doc="How many sessions read the rows of a snapshot at once, of several tables or of ranges of large ones.",
    )
    snapshot_max_threads_multiplier: int = option(
        default=1,
        importance=LOW,
        validator=between(1, 64),
        doc="Into how many pieces for each session a large table is divided, by ranges of its key.",
    )
    snapshot_delay_ms: Long = option(
        default=0, importance=LOW, validator=at_least(0), doc="Milliseconds to wait before a snapshot."
    )
    streaming_delay_ms: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds to wait between the snapshot and the stream.",
    )
    snapshot_include_collection_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for the captured tables that the snapshot reads; by default all.",
    )
    snapshot_select_statement_overrides: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Tables whose rows the snapshot reads by a statement of your own, which the key "
        "snapshot.select.statement.overrides.TABLE has.",
    )
    snapshot_tables_order_by_row_count: Literal["disabled", "ascending", "descending"] = option(
        default="disabled",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether the snapshot reads the smallest or the largest tables first; by default in the order of "
        "their names.",
    )

    def column_rules(self) -> ColumnRules:
        """Return what the ``column.*`` keys say."""
        return ColumnRules(
            NameFilter.of(self.column_include_list, self.column_exclude_list),
            tuple(masks_of(self.originals)),
            name_patterns(self.column_propagate_source_type),
            name_patterns(self.datatype_propagate_source_type),
            self.include_schema_comments,
        )

    def key_rules(self) -> KeyRules:
        """Return what ``message.key.columns`` says."""
        return KeyRules.of(self.message_key_columns)

    def table_filter(self) -> NameFilter:
        """Return which tables are captured, by name."""
        return NameFilter.of(self.table_include_list, self.table_exclude_list)

    def select_overrides(self) -> dict[str, str]:
        """Return the statements by which the snapshot reads tables, by name."""
        return {name: self.originals.get(_OVERRIDE + name) or "" for name in self.snapshot_select_statement_overrides}

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for lists that exclude each other, bad masks, and statements that are missing."""
        yield from super().check()
        yield from self._contradictions()
        for name, statement in self.select_overrides().items():
            key = f"snapshot.select.statement.overrides.{name}"
            if not statement.strip():
                yield ConfigRuleError(f"{name} is to be read by a statement of your own: set {key}.", key)
        try:
            tuple(masks_of(self.originals))
        except (re.error, ValueError) as error:
            yield ConfigRuleError(f"A key column.mask or column.truncate cannot be read: {error}")

    def _contradictions(self) -> Iterator[ConfigError]:
        for kind in ("table", "column"):
            if self.originals.get(f"{kind}.include.list") and self.originals.get(f"{kind}.exclude.list"):
                yield ConfigRuleError(
                    f"Set {kind}.include.list or {kind}.exclude.list, not both.",
                    f"{kind}.include.list",
                    f"{kind}.exclude.list",
                )
