"""EventRouter: sends the events that an application writes to an outbox table to their topics."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar

from connect.config import HIGH, LOW, MEDIUM, Config, invalid_value, option
from connect.data import Record, Schema, SinkRecord, Type
from connect.errors import ConfigError, ConnectError, DataError
from connect.internals.java.date_text import milliseconds_of
from connect.internals.java.regex import expand, regex_from_java, valid_java_regex
from connect.transformation import Transformation
from connect.transforms.debezium.by_logical_table_router import SchemaNames
from connect.transforms.debezium.json_payload import JsonPayload
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import copy_of, require_map

__all__ = ["EventRouter", "EventRouterConfig"]

R = TypeVar("R", bound=Record)

_log: Final = logging.getLogger(__name__)
_PURPOSE: Final = "reading an outbox event"
_PLACES: Final = ("header", "envelope", "partition")
_PER_MILLISECOND: Final = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


class _Addition(NamedTuple):
    """A column of the outbox table that becomes a header, a field of the value, or the partition."""

    field: str
    place: str
    name: str


class EventRouterConfig(Config):
    """The columns of the outbox table, and what becomes of them."""

    old_keys = MappingProxyType(
        {
            "table.field.payload": "table.field.event.payload",
            "table.field.payload.id": "table.field.event.key",
            "table.field.schema.version": "table.field.event.schema.version",
            "debezium.op.invalid.behavior": "table.op.invalid.behavior",
        }
    )

    table_field_event_id: str = option(
        default="id", importance=LOW, doc="The column with the id of the event, which becomes the header id."
    )
    table_field_event_key: str = option(
        default="aggregateid", importance=LOW, doc="The column that becomes the key of the record."
    )
    table_field_event_type: str = option(
        default="type", importance=LOW, doc="The column with the type of the event. It has no effect, as in Debezium."
    )
    table_field_event_payload: str = option(
        default="payload", importance=LOW, doc="The column that becomes the value of the record."
    )
    table_field_event_timestamp: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The column that becomes the timestamp of the record; by default that of the change event.",
    )
    table_fields_additional_placement: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        doc="Further columns, as column:header, column:envelope or column:partition, with a new name as a third part. "
        "With envelope the value is a struct with the field payload and these columns.",
    )
    table_fields_additional_error_on_missing: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether an event fails that lacks one of these columns; otherwise the column is left out.",
    )
    table_field_event_schema_version: str | None = option(
        default=None, importance=LOW, doc="The column with the version of the schema that the value gets."
    )
    table_op_invalid_behavior: Literal["warn", "error", "fatal"] = option(
        default="warn",
        importance=MEDIUM,
        ignore_case=True,
        doc="What happens to an update of the outbox table: it is dropped and logged as a warning or an error, or it "
        "fails the task.",
    )
    table_expand_json_payload: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a payload that is text with a JSON object or array becomes a struct or array; other text stays.",
    )
    table_json_payload_null_behavior: Literal["ignore", "optional_bytes"] = option(
        default="ignore",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether a null in such JSON is left out, or becomes a field of optional bytes.",
    )
    field_name_adjustment_mode: Literal["none", "avro", "avro_unicode"] = option(
        default="none",
        importance=LOW,
        ignore_case=True,
        doc="Whether characters that Avro does not allow in the names of fields of such JSON become _ (avro) or their "
        "code (avro_unicode).",
    )
    route_by_field: str = option(
        default="aggregatetype", importance=HIGH, doc="The column that decides the topic of the event."
    )
    route_topic_regex: str = option(
        default="(?<routedByValue>.*)",
        importance=LOW,
        validator=valid_java_regex,
        doc="The regular expression that the whole text of that column must match; other text is itself the topic.",
    )
    route_topic_replacement: str = option(
        default="outbox.event.${routedByValue}",
        importance=HIGH,
        doc="The topic. ${routedByValue} and $1 stand for the groups of the expression.",
    )
    route_tombstone_on_empty_payload: bool = option(
        default=False,
        importance=HIGH,
        doc="Whether an event whose payload is null or blank becomes a tombstone.",
    )

    def check(self) -> list[ConfigError]:
        """Refuse columns without a place."""
        items = self.table_fields_additional_placement
        if all(len(parts := item.split(":")) in (2, 3) and parts[1].strip().lower() in _PLACES for item in items):
            return []
        form = "Write column:header, column:envelope or column:partition, with a new name as a third part if wanted"
        return [invalid_value("table.fields.additional.placement", items, form)]

    @property
    def additions(self) -> list[_Addition]:
        """The further columns."""
        parts = [[part.strip() for part in item.split(":")] for item in self.table_fields_additional_placement]
        return [_Addition(column, place.lower(), (rest or [column])[0]) for column, place, *rest in parts]


class EventRouter(Transformation[EventRouterConfig]):
    """Makes records of the rows that an application inserts into an outbox table, and sends them to their topics.

    Deletes and tombstones of the table are dropped. Records that are no change events pass unchanged.
    """

    def __init__(self, config: EventRouterConfig) -> None:
        super().__init__(config)
        self._regex = regex_from_java(config.route_topic_regex)
        self._additions = config.additions
        self._has_envelope = any(addition.place == "envelope" for addition in self._additions)
        names = SchemaNames(config.field_name_adjustment_mode)
        self._json = JsonPayload(config.table_json_payload_null_behavior, names)

    def apply(self, record: R) -> R | None:
        """Return the record of an outbox event, or ``None`` if the change is no event."""
        if record.value is None:
            return None
        if not is_envelope(record.value_schema, record.value):
            return record
        change = require_map(record.value, record.value_schema, _PURPOSE)
        operation = change.get("op")
        if operation == "d":
            return None
        if operation == "u":
            self._report_update(record)
            return None
        return self._routed(record, change, _Row.of(record.value_schema, change))

    def _report_update(self, record: Record) -> None:
        message = (
            "An update of the outbox table of topic %s is dropped: rows of an outbox are inserted and deleted only"
        )
        match self.config.table_op_invalid_behavior:
            case "warn":
                _log.warning(message, record.topic)
            case "error":
                _log.error(message, record.topic)
            case _:
                raise ConnectError(
                    f"A row of the outbox table of topic {record.topic} was changed, which is no event: have the "
                    "application add rows only, or choose warn for table.op.invalid.behavior."
                )

    def _routed(self, record: R, change: Mapping[str, Any], row: _Row) -> R:
        config, new = self.config, copy_of(record)
        by = row.text(config.route_by_field)
        new.topic = self._topic(by)
        new.timestamp = self._timestamp(change, row)
        new.key_schema, new.key = row.schema_of(config.table_field_event_key), row.read(config.table_field_event_key)
        event_id = row.read(config.table_field_event_id)
        new.headers = new.headers.add("id", event_id, row.schema_of(config.table_field_event_id))
        new.value_schema, new.value = self._payload(record, row)
        is_empty = new.value is None or not str(new.value).strip()
        partition = None
        for addition in self._present(row):
            if addition.place == "header":
                item, schema = row.read(addition.field), row.schema_of(addition.field)
                new.headers = new.headers.add(addition.name, item, schema)
            elif addition.place == "partition":
                partition = row.whole(addition.field)
        if is_empty and config.route_tombstone_on_empty_payload:
            new.value_schema, new.value = None, None
        elif self._has_envelope:
            new.value_schema, new.value = self._enveloped(new.value_schema, new.value, row, by)
        if partition is not None or not isinstance(record, SinkRecord):
            new.partition = partition
        return new

    def _topic(self, text: str) -> str:
        if self._regex.fullmatch(text) is None:
            return text
        replacement = self.config.route_topic_replacement
        try:
            return self._regex.sub(lambda match: expand(replacement, match), text, count=1)
        except (IndexError, ValueError) as error:
            raise DataError(f"route.topic.replacement {replacement} of {text}: {error}") from error

    def _timestamp(self, change: Mapping[str, Any], row: _Row) -> int | None:
        field = self.config.table_field_event_timestamp
        found = row.read(field) if field else None
        if field is None or found is None:
            return change.get("ts_ms")
        if isinstance(found, dt.datetime):
            return milliseconds_of(found)
        schema = row.schema_of(field)
        divisor = 1 if schema is None else _PER_MILLISECOND.get(schema.name or "")
        if divisor is None or not isinstance(found, int):
            raise DataError(f"Column {field} must be a timestamp of Debezium, to be that of the record")
        return found // divisor if found >= 0 else -(-found // divisor)

    def _payload(self, record: Record, row: _Row) -> tuple[Schema | None, Any]:
        field = self.config.table_field_event_payload
        schema, payload = row.schema_of(field), row.read(field)
        if not self.config.table_expand_json_payload or payload is None:
            return schema, payload
        if not isinstance(payload, str):
            _log.warning("A payload of topic %s is no text, and so not expanded as JSON", record.topic)
            return schema, payload
        try:
            return self._json.parsed(payload, field, typed=row.schema is not None)
        except ValueError as error:
            # I8: the error may quote the payload.
            _log.warning("A payload of topic %s is not expanded: %s", record.topic, type(error).__name__)
            return schema, payload

    def _present(self, row: _Row) -> list[_Addition]:
        if self.config.table_fields_additional_error_on_missing:
            return self._additions
        return [addition for addition in self._additions if row.has(addition.field)]

    def _enveloped(self, schema: Schema | None, payload: Any, row: _Row, by: str) -> tuple[Schema | None, Any]:
        placed = [addition for addition in self._present(row) if addition.place == "envelope"]
        value = {"payload": payload, **{addition.name: row.read(addition.field) for addition in placed}}
        if row.schema is None or schema is None:
            return None, value
        fields = {"payload": schema}
        for addition in placed:
            fields[addition.name] = row.schema_of(addition.field) or Schema.string(optional=True)
        version = self.config.table_field_event_schema_version
        of_column = None if version is None else row.whole(version)
        return Schema.struct(fields, name=_schema_name(row.schema.name, by), version=of_column), value


def _schema_name(row: str | None, by: str) -> str:
    """Return the name of the schema of a value, from that of the row and the text that decides the topic."""
    if row is None:
        return by
    space, dot, name = row.rpartition(".")
    return f"{space}{dot}{by}.{name}"


class _Row(NamedTuple):
    """A row of the outbox table."""

    schema: Schema | None
    values: Mapping[str, Any]

    @classmethod
    def of(cls, envelope: Schema | None, change: Mapping[str, Any]) -> _Row:
        """Return the row of a change event."""
        field = None if envelope is None else envelope.field("after")
        schema = None if field is None else field.schema
        if schema is not None and schema.type is not Type.STRUCT:
            raise DataError(f"The row of an outbox event must be a struct, not {schema.type.name}")
        return cls(schema, require_map(change.get("after"), schema, _PURPOSE))

    def has(self, column: str) -> bool:
        """Return whether there is such a column."""
        return column in self.values if self.schema is None else self.schema.field(column) is not None

    def read(self, column: str) -> Any:
        """Return the value of a column; raise :class:`~connect.errors.DataError` if there is none."""
        if not self.has(column):
            raise DataError(f"The outbox table has no column {column}: name the right one in the transformation")
        found = self.values.get(column)
        schema = self.schema_of(column)
        return schema.default if found is None and schema is not None else found

    def schema_of(self, column: str) -> Schema | None:
        """Return the schema of a column."""
        field = None if self.schema is None else self.schema.field(column)
        return None if field is None else field.schema

    def text(self, column: str) -> str:
        """Return the text in a column."""
        found = self.read(column)
        if not isinstance(found, str):
            raise DataError(f"Column {column} of the outbox table must be text, but is {type(found).__name__}")
        return found

    def whole(self, column: str) -> int | None:
        """Return the whole number in a column, or ``None`` for null."""
        found = self.read(column)
        if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
            raise DataError(f"Column {column} of the outbox table must be a whole number")
        return found
