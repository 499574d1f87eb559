"""Messages as records: the body with headers, as Confluent's connector, or structs, as jcustenborder's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from connect.data import Header, Headers, Schema, SourceBatch, ValueColumn, timestamp_schema
from connectors.rabbitmq.consumers import Delivery
from connectors.rabbitmq.source_config import RabbitMQSourceConfig, RecordFormat

__all__ = ["KEY_SCHEMA", "MESSAGE_SCHEMA", "RecordMaker", "header_values"]

_STRING: Final = Schema.string()
_OPTIONAL_STRING: Final = Schema.string(optional=True)
_BYTES: Final = Schema.bytes()
_BOOLEAN: Final = Schema.boolean()
_INT32: Final = Schema.int32()
_INT64: Final = Schema.int64()
_FLOAT64: Final = Schema.float64()
_TIMESTAMP: Final = timestamp_schema()
_OPTIONAL_TIMESTAMP: Final = timestamp_schema(optional=True)
_NO_TIME: Final = Header("rabbitmq.timestamp", None, _OPTIONAL_TIMESTAMP)
_STRINGS: Final = Schema.array(_STRING)
_SCHEMAS: Final[Mapping[type, Schema]] = {
    bool: _BOOLEAN,
    float: _FLOAT64,
    str: _STRING,
    bytes: _BYTES,
    type(None): _OPTIONAL_STRING,
}
_MOST_KNOWN: Final = 1000

_PROPERTIES: Final = (
    ("content_type", "rabbitmq.content.type", "contentType"),
    ("content_encoding", "rabbitmq.content.encoding", "contentEncoding"),
    ("delivery_mode", "rabbitmq.delivery.mode", "deliveryMode"),
    ("priority", "rabbitmq.priority", "priority"),
    ("correlation_id", "rabbitmq.correlation.id", "correlationId"),
    ("reply_to", "rabbitmq.reply.to", "replyTo"),
    ("expiration", "rabbitmq.expiration", "expiration"),
    ("message_id", "rabbitmq.message.id", "messageId"),
    ("timestamp", "rabbitmq.timestamp", "timestamp"),
    ("type", "rabbitmq.type", "type"),
    ("user_id", "rabbitmq.user.id", "userId"),
    ("app_id", "rabbitmq.app.id", "appId"),
)
"""The properties of a message: pika's names, and those of Confluent's headers and of jcustenborder's fields."""

_NUMBERS: Final = frozenset({"delivery_mode", "priority"})

_PACKAGE: Final = "com.github.jcustenborder.kafka.connect.rabbitmq"
_HEADER_SCHEMA: Final = Schema.struct(
    {
        "type": _STRING,
        "timestamp": _OPTIONAL_TIMESTAMP,
        "int8": Schema.int8(optional=True),
        "int16": Schema.int16(optional=True),
        "int32": Schema.int32(optional=True),
        "int64": Schema.int64(optional=True),
        "float32": Schema.float32(optional=True),
        "float64": Schema.float64(optional=True),
        "boolean": Schema.boolean(optional=True),
        "string": _OPTIONAL_STRING,
        "bytes": Schema.bytes(optional=True),
    },
    name=f"{_PACKAGE}.BasicProperties.HeaderValue",
)
_NO_VALUES: Final = dict.fromkeys(field.name for field in _HEADER_SCHEMA.fields)
_ENVELOPE_SCHEMA: Final = Schema.struct(
    {
        "deliveryTag": _INT64,
        "isRedeliver": _BOOLEAN,
        "exchange": _OPTIONAL_STRING,
        "routingKey": _OPTIONAL_STRING,
    },
    name=f"{_PACKAGE}.Envelope",
)


def _property_schema(name: str) -> Schema:
    if name == "timestamp":
        return _OPTIONAL_TIMESTAMP
    return Schema.int32(optional=True) if name in _NUMBERS else _OPTIONAL_STRING


def _properties_schema() -> Schema:
    fields = {field: _property_schema(name) for name, _, field in _PROPERTIES}
    # The headers are the third field, as in Java.
    ordered = list(fields.items())
    ordered.insert(2, ("headers", Schema.map(_STRING, _HEADER_SCHEMA)))
    return Schema.struct(dict(ordered), name=f"{_PACKAGE}.BasicProperties")


MESSAGE_SCHEMA: Final = Schema.struct(
    {
        "consumerTag": _STRING,
        "envelope": _ENVELOPE_SCHEMA,
        "basicProperties": _properties_schema(),
        "body": _BYTES,
    },
    name=f"{_PACKAGE}.Message",
)
KEY_SCHEMA: Final = Schema.struct({"messageId": _OPTIONAL_STRING}, name=f"{_PACKAGE}.MessageKey")

_TYPES: Final[Mapping[Schema, str]] = {
    _BOOLEAN: "boolean",
    _INT32: "int32",
    _INT64: "int64",
    _FLOAT64: "float64",
    _BYTES: "bytes",
    _TIMESTAMP: "timestamp",
    _STRING: "string",
    _OPTIONAL_STRING: "string",
}


def _zoned(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value


def _date(seconds: object) -> dt.datetime | None:
    """Return the time of a message, which is in seconds; ``None`` if it has none, or one after the year 9999."""
    if isinstance(seconds, dt.datetime):
        return _zoned(seconds)
    if not isinstance(seconds, int):
        return None
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (OverflowError, OSError, ValueError):
        return None


def header_values(headers: Mapping[Any, Any] | None) -> Iterator[tuple[str, Schema, Any]]:
    """Yield the name, the schema and the value of each header. A table is JSON text, and so is an array of other than
    texts."""
    for name, value in (headers or {}).items():
        text = name if isinstance(name, str) else bytes(name).decode("utf-8", "backslashreplace")
        yield text, *_typed(value)


def _typed(value: Any) -> tuple[Schema, Any]:
    """Return the schema of a value, and the value as Python's own: the library has an int of its own, for example."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Not by "in": a range looks through its numbers for one that is of a class of its own.
        if _fits(value, 32):
            return _INT32, int(value)
        return (_INT64, int(value)) if _fits(value, 64) else (_STRING, str(int(value)))
    if isinstance(value, list):
        return (_STRINGS, value) if all(isinstance(item, str) for item in value) else (_STRING, _json(value))
    if isinstance(value, dt.datetime):
        return _TIMESTAMP, _zoned(value)
    schema = _SCHEMAS.get(type(value))
    return (schema, value) if schema is not None else (_STRING, _json(value))


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _json(value: Any) -> str:
    import orjson  # noqa: PLC0415 - for tables and arrays in headers alone

    return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, Decimal | int) else repr(value)


class RecordMaker:
    """Makes batches of deliveries of one queue. Keeps the headers of values that come again and again."""

    def __init__(self, config: RabbitMQSourceConfig, queue: str) -> None:
        self._topic = config.topics.get(queue, config.kafka_topic)
        self._is_struct = config.record_format is RecordFormat.MESSAGE
        self._partition = {"rabbitmq": config.place, "queue": queue}
        self._made = 0
        self._known: dict[tuple[str, Any], Header] = {}

    def batch(self, deliveries: Sequence[Delivery]) -> SourceBatch:
        """Return the records of deliveries. Their offsets count them: RabbitMQ has no positions."""
        first, self._made = self._made + 1, self._made + len(deliveries)
        ids = [each.properties.message_id for each in deliveries]
        if self._is_struct:
            key = ValueColumn([{"messageId": each} for each in ids], KEY_SCHEMA)
            value = ValueColumn([_struct(each) for each in deliveries], MESSAGE_SCHEMA)
        else:
            key = ValueColumn(ids, _OPTIONAL_STRING)
            value = ValueColumn([each.body for each in deliveries], _BYTES)
        return SourceBatch.of(
            self._topic,
            value,
            source_partition=self._partition,
            source_offsets=[{"delivery": number} for number in range(first, self._made + 1)],
            key=key,
            headers=None if self._is_struct else [self._headers(each) for each in deliveries],
        )

    def _headers(self, delivery: Delivery) -> Headers:
        """Return the headers that Confluent's connector makes, in its order."""
        properties, header = delivery.properties, self._header
        made = [
            header("rabbitmq.consumer.tag", delivery.consumer_tag, _STRING),
            header("rabbitmq.content.type", properties.content_type, _OPTIONAL_STRING),
            header("rabbitmq.content.encoding", properties.content_encoding, _OPTIONAL_STRING),
        ]
        if properties.headers:
            made += [
                Header(f"rabbitmq.headers.{name}", value, schema)
                for name, schema, value in header_values(properties.headers)
            ]
        date = _date(properties.timestamp)
        made += (
            header("rabbitmq.delivery.mode", properties.delivery_mode or 0, _INT32),
            header("rabbitmq.priority", properties.priority or 0, _INT32),
            header("rabbitmq.correlation.id", properties.correlation_id, _OPTIONAL_STRING),
            header("rabbitmq.reply.to", properties.reply_to, _OPTIONAL_STRING),
            header("rabbitmq.expiration", properties.expiration, _OPTIONAL_STRING),
            header("rabbitmq.message.id", properties.message_id, _OPTIONAL_STRING),
            _time_header(properties.timestamp, date),
            header("rabbitmq.type", properties.type, _OPTIONAL_STRING),
            header("rabbitmq.user.id", properties.user_id, _OPTIONAL_STRING),
            header("rabbitmq.app.id", properties.app_id, _OPTIONAL_STRING),
            Header("rabbitmq.delivery.tag", delivery.tag, _INT64),
            header("rabbitmq.redeliver", delivery.is_redelivered, _BOOLEAN),
            header("rabbitmq.exchange", delivery.exchange, _STRING),
            header("rabbitmq.routing.key", delivery.routing_key, _STRING),
        )
        return Headers(made)

    def _header(self, name: str, value: Any, schema: Schema) -> Header:
        found = self._known.get((name, value))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[name, value] = Header(name, value, schema)
        return found


def _time_header(seconds: Any, date: dt.datetime | None) -> Header:
    """Return the header of the time, as the number that was sent if that is no date: of milliseconds, for example."""
    if date is None and isinstance(seconds, int) and _fits(seconds, 64):
        return Header("rabbitmq.timestamp", int(seconds), _INT64)
    return Header("rabbitmq.timestamp", date, _OPTIONAL_TIMESTAMP) if date is not None else _NO_TIME


def _struct(delivery: Delivery) -> dict[str, Any]:
    properties = delivery.properties
    found: dict[str, Any] = {field: getattr(properties, name) for name, _, field in _PROPERTIES}
    found["timestamp"] = _date(properties.timestamp)
    found["headers"] = {
        name: _header_struct(schema, value) for name, schema, value in header_values(properties.headers)
    }
    return {
        "consumerTag": delivery.consumer_tag,
        "envelope": {
            "deliveryTag": delivery.tag,
            "isRedeliver": delivery.is_redelivered,
            "exchange": delivery.exchange,
            "routingKey": delivery.routing_key,
        },
        "basicProperties": found,
        "body": delivery.body,
    }


def _header_struct(schema: Schema, value: Any) -> dict[str, Any]:
    if schema is _STRINGS:
        schema, value = _STRING, _json(value)
    kind = _TYPES[schema]
    return {**_NO_VALUES, "type": kind, kind: value}
