"""Records as messages: the body, where it goes, and its properties."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from connect.data import Headers, SinkRecord
from connect.errors import ConnectError, DataError
from connectors.rabbitmq.sink_config import RabbitMQSinkConfig

__all__ = ["Message", "MessageMaker"]

_SHORT_BYTES: Final = 255
_DELIVERY_MODES: Final = {"PERSISTENT": 2, "TRANSIENT": 1}
_OVERHEAD_BYTES: Final = 500
_FRAME_BYTES: Final = 22
"""Bytes of the frame of a message's properties beside these."""


@dataclass(slots=True, eq=False)
class Message:
    """A message, and the record that it was made of."""

    record: SinkRecord
    exchange: str
    routing_key: str
    properties: Any
    body: bytes
    is_plain: bool = False
    """Whether the properties are only those that each message has."""
    tries: int = 0

    @property
    def size(self) -> int:
        """Roughly the bytes of memory."""
        return len(self.body) + _OVERHEAD_BYTES

    @property
    def head_bytes(self) -> int:
        """The bytes of the frame of its properties, which cannot be divided."""
        return sum(map(len, self.properties.encode())) + _FRAME_BYTES


def _short(text: str, what: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > _SHORT_BYTES:
        raise DataError(f"{what} has more than {_SHORT_BYTES} bytes, which AMQP does not allow.")
    return text


class MessageMaker:
    """Makes messages as the configuration says."""

    def __init__(self, config: RabbitMQSinkConfig) -> None:
        from pika import BasicProperties  # noqa: PLC0415 - the library is loaded only where it is used

        self._config = config
        self._queues = config.queues
        self._mode = _DELIVERY_MODES[config.rabbitmq_delivery_mode]
        self._properties = BasicProperties
        self._plain = BasicProperties(delivery_mode=self._mode)
        self._is_plain = not (
            config.rabbitmq_forward_kafka_key
            or config.rabbitmq_forward_kafka_headers
            or config.rabbitmq_forward_kafka_metadata
        )

    def message(self, record: SinkRecord) -> Message:
        """Return the message of a record; raises ``DataError`` if it cannot be one."""
        exchange, routing_key = self._route(record)
        properties = self._plain if self._is_plain else self._made(record)
        return Message(record, exchange, routing_key, properties, _body(record.value), self._is_plain)

    def _route(self, record: SinkRecord) -> tuple[str, str]:
        queue = self._queues.get(record.topic)
        if queue is not None:
            return "", queue
        if self._config.rabbitmq_exchange is None:
            raise ConnectError(
                f"The topic {record.topic} has no queue: name it in rabbitmq.topic.queue.map, or set rabbitmq.exchange."
            )
        key = self._config.rabbitmq_routing_key
        if "${" in key:
            key = key.replace("${topic}", record.topic)
            if "${key}" in key:
                key = key.replace("${key}", _text(record.key))
        return self._config.rabbitmq_exchange, _short(key, "The routing key")

    def _made(self, record: SinkRecord) -> Any:
        config = self._config
        headers: dict[str, Any] = {}
        if config.rabbitmq_forward_kafka_headers:
            headers |= _headers(record.headers)
        if config.rabbitmq_forward_kafka_metadata:
            headers |= {
                "KAFKA_TOPIC": record.original_topic,
                "KAFKA_PARTITION": record.original_partition,
                "KAFKA_OFFSET": record.original_offset,
            }
        correlation = None
        if config.rabbitmq_forward_kafka_key and record.key is not None:
            correlation = _short(_text(record.key), "The key, which is to be the correlation id,")
        return self._properties(delivery_mode=self._mode, headers=headers or None, correlation_id=correlation)


def _body(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if value is None:
        raise DataError("Its value is null, which a message cannot be: drop such records by a transformation.")
    raise DataError(
        f"Its value is of the type {type(value).__name__}, not text or bytes: set value.converter to StringConverter "
        "or ByteArrayConverter, which pass on what is on the topic."
    )


def _text(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError as error:
            raise DataError("Its key is no text of UTF-8.") from error
    if key is None:
        raise DataError("It has no key, which ${key} in rabbitmq.routing.key needs.")
    if isinstance(key, int | float | Decimal):
        return str(key).lower() if isinstance(key, bool) else str(key)
    raise DataError(f"Its key is of the type {type(key).__name__}, not text, bytes or a number.")


def _headers(headers: Headers) -> dict[str, Any]:
    """Return the headers as AMQP has them; of several with one name, the last."""
    return {_short(header.key, f"The name of the header {header.key[:40]}"): _plain(header.value) for header in headers}


_AS_THEY_ARE: Final = (type(None), bool, float, str, bytes)
_AS_TEXT: Final = (dt.datetime, dt.date, dt.time)


def _plain(value: Any) -> Any:
    """Return a value that AMQP can hold: what it would hold inexactly is text."""
    if isinstance(value, _AS_THEY_ARE):
        return value
    if isinstance(value, Mapping):
        return {_short(str(name), "A name in a header"): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, _AS_TEXT):
        return value.isoformat()
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return value
    if isinstance(value, int | Decimal):
        return str(value)
    raise DataError(f"A header has a value of the type {type(value).__name__}, which AMQP does not have.")
