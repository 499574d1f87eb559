"""The envelope of an event: its schema, made once for each schema of changes, and its attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from connect.data import Schema, Type
from connect.errors import DataError
from connect.kits.cdc.topics import NameAdjustmentMode, adjusted
from connect.kits.cdc.transactions import BLOCK_SCHEMA
from converters.cloud_events.change import Change

__all__ = ["REQUIRED", "EventMaker", "EventShape", "data_schema"]

REQUIRED: Final = ("id", "source", "specversion", "type")
"""The attributes that every event has."""
_VERSION: Final = "1.0"
_STRING: Final = Schema.string()
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CACHED: Final = 1000
"""The number of schemas of changes whose events' schemas are kept."""


@dataclass(frozen=True, slots=True)
class _Extension:
    """An attribute made of a field: ``is_text`` if its numbers are written as text, as those of 64 bits have to be."""

    name: str
    field: str
    schema: Schema
    default: Any
    is_text: bool

    def value(self, block: Mapping[str, Any]) -> Any:
        """Return the value of the attribute."""
        value = block.get(self.field)
        if value is None:
            value = self.default
        return str(value) if self.is_text and value is not None else value


@dataclass(frozen=True, slots=True)
class EventShape:
    """The schema of events, and the attributes made of source and transaction."""

    schema: Schema
    source: tuple[_Extension, ...]
    transaction: tuple[_Extension, ...]


class EventMaker:
    """Makes the attributes of events; their data is added by whoever knows its format."""

    def __init__(self, *, extends: bool, name: str | None, adjustment: NameAdjustmentMode, content_type: str) -> None:
        self._extends = extends
        self._name = name
        self._adjustment = adjustment
        self._content_type = content_type
        self._shape = lru_cache(_CACHED)(self._new_shape)

    def shape(self, change: Change, data: Schema | None, *, has_link: bool) -> EventShape:
        """Return the shape of the event of a change whose data has this schema; ``None`` if it has no data yet."""
        name = self._name or f"{change.source.get('name')}.{change.source.get('db')}.CloudEvents.Envelope"
        return self._shape(change.source_schema, name, data, has_link, change.traceparent is not None)

    def attributes(self, change: Change, shape: EventShape, link: str | None) -> dict[str, Any]:
        """Return the attributes of an event; ``link`` leads to the schema of its data."""
        event: dict[str, Any] = {
            "id": change.id,
            "source": f"/debezium/{change.connector}/{change.source.get('name')}",
            "specversion": _VERSION,
            "type": change.type,
            "time": _time(change.source.get("ts_ms")),
            "datacontenttype": self._content_type,
        }
        if link is not None:
            event["dataschema"] = link
        if change.traceparent is not None:
            event["traceparent"] = change.traceparent
        if self._extends:
            event[_extension_name("op")] = change.operation
            for each in shape.source:
                event[each.name] = each.value(change.source)
            for each in shape.transaction:
                event[each.name] = each.value(change.transaction or {})
        return event

    def _new_shape(
        self, source: Schema, name: str, data: Schema | None, has_link: bool, has_traceparent: bool
    ) -> EventShape:
        plain = [*REQUIRED, "time", "datacontenttype"]
        plain += ["dataschema"] * has_link + ["traceparent"] * has_traceparent
        fields = dict.fromkeys(plain, _STRING)
        of_source = tuple(_extensions(source)) if self._extends else ()
        of_transaction = tuple(_extensions(BLOCK_SCHEMA, "tx_")) if self._extends else ()
        if self._extends:
            fields[_extension_name("op")] = _STRING
            for each in (*of_source, *of_transaction):
                if each.name in fields:
                    raise DataError(f"Two fields of the record's source would be the attribute {each.name}.")
                fields[each.name] = each.schema
        if data is not None:
            fields["data"] = data
        return EventShape(Schema.struct(fields, name=adjusted(name, self._adjustment)), of_source, of_transaction)


def _extensions(block: Schema, prefix: str = "") -> Iterator[_Extension]:
    for field in block.fields:
        schema, optional = field.schema, bool(prefix) or field.schema.optional
        match schema.type:
            case Type.BOOLEAN:
                made = Schema.boolean(optional=optional)
            case Type.INT8 | Type.INT16 | Type.INT32:
                made = Schema.int32(optional=optional)
            case Type.STRING | Type.INT64:
                made = Schema.string(optional=optional)
            case _:
                raise DataError(
                    f"The field {field.name} of the record's source is {schema.type.value}, which no attribute of a "
                    "CloudEvent can be: set extension.attributes.enable=false."
                )
        is_text = schema.type is Type.INT64
        yield _Extension(_extension_name(prefix + field.name), field.name, made, schema.default, is_text)


def _extension_name(name: str) -> str:
    return "iodebezium" + _NOT_IN_NAMES.sub("", name)


def _time(milliseconds: Any) -> str:
    if not isinstance(milliseconds, int):
        raise DataError("The source of the record has no ts_ms, which is the time of its event.")
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise DataError(f"The ts_ms {milliseconds} of the record's source is beyond the year 9999.") from error
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


@lru_cache(_CACHED)
def data_schema(schema: Schema, name: str, fields: tuple[str, ...] | None) -> Schema:
    """Return the schema of the data of changes: some fields of their envelope, or all of their value."""
    found = {field.name: field.schema for field in schema.fields}
    if fields is not None:
        found = {field: found[field] for field in fields if field in found}
    return Schema.struct(found, name=name)
