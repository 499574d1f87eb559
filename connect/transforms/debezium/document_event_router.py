"""DocumentEventRouter: sends the events in an outbox collection of MongoDB to their topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

from connect.config import HIGH, LOW, MEDIUM, Config, ConfigRuleError, option
from connect.data import Field, Record, Schema
from connect.errors import ConfigError, DataError
from connect.internals.java.regex import valid_java_regex
from connect.transformation import Transformation
from connect.transforms.debezium.by_logical_table_router import SchemaNames
from connect.transforms.debezium.documents import Documents, parse_document
from connect.transforms.debezium.event_router import EventRouter, EventRouterConfig
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import copy_of, require_map

__all__ = ["DocumentEventRouter", "DocumentEventRouterConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "reading an outbox event of MongoDB"
_TIMESTAMP: Final = Schema.int64(name="io.debezium.time.Timestamp", version=1)


class DocumentEventRouterConfig(Config):
    """The fields of the documents in the outbox collection, and what becomes of them."""

    collection_field_event_id: str = option(
        default="_id", importance=LOW, doc="The field with the id of the event, which becomes the header id."
    )
    collection_field_event_key: str = option(
        default="aggregateid", importance=LOW, doc="The field that becomes the key of the record."
    )
    collection_field_event_type: str = option(
        default="type", importance=LOW, doc="The field with the type of the event. It has no effect, as in Debezium."
    )
    collection_field_event_payload: str = option(
        default="payload", importance=LOW, doc="The field that becomes the value of the record."
    )
    collection_field_event_timestamp: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The field with milliseconds that become the timestamp of the record; by default that of the event.",
    )
    collection_fields_additional_placement: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        doc="Further fields, as field:header, field:envelope or field:partition, with a new name as a third part.",
    )
    collection_fields_additional_error_on_missing: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether an event fails that lacks one of these fields; otherwise the field is left out.",
    )
    collection_field_event_schema_version: str | None = option(
        default=None, importance=LOW, doc="The field with the version of the schema that the value gets."
    )
    collection_op_invalid_behavior: Literal["warn", "error", "fatal"] = option(
        default="warn",
        importance=MEDIUM,
        ignore_case=True,
        doc="What happens to an update in the outbox collection: it is dropped and logged as a warning or an error, or "
        "it fails the task.",
    )
    collection_expand_json_payload: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a payload that is a document becomes a struct; otherwise it becomes extended JSON.",
    )
    route_by_field: str = option(
        default="aggregatetype", importance=HIGH, doc="The field that decides the topic of the event."
    )
    route_topic_regex: str = option(
        default="(?<routedByValue>.*)",
        importance=LOW,
        validator=valid_java_regex,
        doc="The regular expression that the whole text of that field must match; other text is itself the topic.",
    )
    route_topic_replacement: str = option(
        default="outbox.event.${routedByValue}",
        importance=HIGH,
        doc="The topic. ${routedByValue} and $1 stand for the groups of the expression.",
    )
    route_tombstone_on_empty_payload: bool = option(
        default=False, importance=HIGH, doc="Whether an event whose payload is null or blank becomes a tombstone."
    )

    def check(self) -> list[ConfigError]:
        """Refuse fields without a place."""
        try:
            _ = self.of_table
        except ConfigError as error:
            told = str(error).replace("table.fields", "collection.fields").replace("column:", "field:")
            return [ConfigRuleError(told, "collection.fields.additional.placement")]
        return []

    @property
    def of_table(self) -> EventRouterConfig:
        """The same options, for the outbox as a table."""
        return EventRouterConfig(
            table_field_event_id=self.collection_field_event_id,
            table_field_event_key=self.collection_field_event_key,
            table_field_event_payload=self.collection_field_event_payload,
            table_field_event_timestamp=self.collection_field_event_timestamp,
            table_fields_additional_placement=self.collection_fields_additional_placement,
            table_fields_additional_error_on_missing=self.collection_fields_additional_error_on_missing,
            table_field_event_schema_version=self.collection_field_event_schema_version,
            table_op_invalid_behavior=self.collection_op_invalid_behavior,
            route_by_field=self.route_by_field,
            route_topic_regex=self.route_topic_regex,
            route_topic_replacement=self.route_topic_replacement,
            route_tombstone_on_empty_payload=self.route_tombstone_on_empty_payload,
        )


class DocumentEventRouter(Transformation[DocumentEventRouterConfig]):
    """Makes records of the documents inserted into an outbox collection of MongoDB, and sends them to their topics.

    Deletes and tombstones of the collection are dropped. Records that are no change events pass unchanged.
    """

    def __init__(self, config: DocumentEventRouterConfig) -> None:
        super().__init__(config)
        self._router = EventRouter(config.of_table)
        self._documents = Documents(SchemaNames("none"), encodes_arrays=False)

    def apply(self, record: R) -> R | None:
        """Return the record of an outbox event, or ``None`` if the change is no event."""
        if record.value is None or not is_envelope(record.value_schema, record.value):
            return self._router.apply(record)
        event = require_map(record.value, record.value_schema, _PURPOSE)
        after = event.get("after")
        if after is None:
            # An update without the whole document, or a delete: the router drops both by the operation.
            return self._router.apply(record)
        if not isinstance(after, str):
            raise DataError("after must be a document of MongoDB as text: for a table, use EventRouter")
        return self._router.apply(self._with_row(record, event, parse_document(after, "after")))

    def _with_row(self, record: R, event: Mapping[str, Any], document: dict[str, Any]) -> R:
        """Return the record with the document as a row."""
        payload = document.get(self.config.collection_field_event_payload)
        if isinstance(payload, dict) and not self.config.collection_expand_json_payload:
            text = json.dumps(payload, ensure_ascii=False, separators=(",", ": "))
            document[self.config.collection_field_event_payload] = text
        new = copy_of(record)
        if record.value_schema is None:
            new.value = {**event, "after": self._with_timestamp(self._documents.plain(document))}
            return new
        schema, row = self._documents.struct(document, _row_name(record.value_schema))
        fields = {field.name: field.schema for field in record.value_schema.fields}
        fields["after"] = self._timestamped(schema)
        members = [Field(name, member, index) for index, (name, member) in enumerate(fields.items())]
        new.value_schema = record.value_schema.replace(fields=members, default=None)
        new.value = {**event, "after": self._with_timestamp(row)}
        return new

    def _timestamped(self, schema: Schema) -> Schema:
        name = self.config.collection_field_event_timestamp
        fields = [
            Field(field.name, _TIMESTAMP if field.name == name else field.schema, field.index)
            for field in schema.fields
        ]
        return schema.replace(fields=fields)

    def _with_timestamp(self, row: dict[str, Any]) -> dict[str, Any]:
        name = self.config.collection_field_event_timestamp
        if name is not None and not isinstance(row.get(name), int):
            raise DataError(f"Field {name} must be a whole number of milliseconds, to be the timestamp of the record")
        return row


def _row_name(envelope: Schema) -> str | None:
    field = envelope.field("after")
    return None if field is None else field.schema.name
