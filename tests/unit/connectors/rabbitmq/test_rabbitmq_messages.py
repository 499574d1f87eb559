"""Records as messages of RabbitMQ, and messages as records."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pika
import pytest
from pika.compat import long

from connect.data import Header, Headers, Schema, validate
from connect.errors import ConfigError, DataError
from connect.testing.samples import sink_records
from connectors.rabbitmq import RabbitMQSinkConfig, RabbitMQSourceConfig
from connectors.rabbitmq.consumers import Delivery, Lane
from connectors.rabbitmq.messages import MessageMaker
from connectors.rabbitmq.records import MESSAGE_SCHEMA, RecordMaker

SOURCE = {"kafka.topic": "t", "rabbitmq.queue": "q"}
JCUSTENBORDER = "com.github.jcustenborder.kafka.connect.rabbitmq.RabbitMQSourceConnector"


def delivery(**properties: Any) -> Delivery:
    lane = Lane("q", channel=None)  # type: ignore[arg-type]
    return Delivery(lane, "tag", 7, True, "ex", "key", pika.BasicProperties(**properties), b"body")


def headers(**properties: Any) -> dict[str, tuple[Any, Schema | None]]:
    batch = RecordMaker(RabbitMQSourceConfig.parse(SOURCE), "q").batch([delivery(**properties)])
    return {header.key: (header.value, header.schema) for header in next(iter(batch)).headers}


def test_numbers_of_the_library_s_own_class_cost_no_more_than_others() -> None:
    """A range is searched number by number for one of them."""
    found = headers(headers={"a": long(1 << 40), "b": long(3), "c": long(-(1 << 63))})
    assert found["rabbitmq.headers.a"] == (1 << 40, Schema.int64())
    assert found["rabbitmq.headers.b"] == (3, Schema.int32())
    assert found["rabbitmq.headers.c"] == (-(1 << 63), Schema.int64())
    assert {type(found[f"rabbitmq.headers.{name}"][0]) for name in "abc"} == {int}


def test_a_time_that_is_no_date_is_the_number_that_was_sent() -> None:
    """Milliseconds, where AMQP has seconds."""
    assert headers(timestamp=1_700_000_000)["rabbitmq.timestamp"][0] == dt.datetime(
        2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC
    )
    assert headers(timestamp=1_700_000_000_000)["rabbitmq.timestamp"] == (1_700_000_000_000, Schema.int64())


def test_structs_match_their_schema() -> None:
    config = RabbitMQSourceConfig.parse({**SOURCE, "connector.class": JCUSTENBORDER})
    given = {"text": "x", "number": 1, "nothing": None, "table": {"a": [1]}, "texts": ["a"], "bytes": b"b", "yes": True}
    record = next(iter(RecordMaker(config, "q").batch([delivery(headers=given, message_id="m", timestamp=5)])))
    validate(record.value_schema, record.value, "value")
    assert record.value_schema is MESSAGE_SCHEMA
    assert record.key == {"messageId": "m"}
    value = record.value
    assert value["envelope"] == {"deliveryTag": 7, "isRedeliver": True, "exchange": "ex", "routingKey": "key"}
    types = {name: (each["type"], each[each["type"]]) for name, each in value["basicProperties"]["headers"].items()}
    assert types == {
        "text": ("string", "x"),
        "number": ("int32", 1),
        "nothing": ("string", None),
        "table": ("string", '{"a":[1]}'),
        "texts": ("string", '["a"]'),
        "bytes": ("bytes", b"b"),
        "yes": ("boolean", True),
    }


def message(value: Any, *, key: Any = None, given: Headers | None = None, **props: str) -> Any:
    made = {"rabbitmq.exchange": "e", **{name.replace("_", "."): text for name, text in props.items()}}
    record = sink_records([value])[0].replace(key=key, headers=given or Headers())
    return MessageMaker(RabbitMQSinkConfig.parse(made)).message(record)


def test_headers_keep_their_types_or_are_text() -> None:
    given = Headers(
        [
            Header("a", 1),
            Header("large", 1 << 70),
            Header("decimal", Decimal("1.10")),
            Header("time", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
            Header("map", {"x": [None, True]}),
            Header("a", "last"),
        ]
    )
    found = message("x", given=given, rabbitmq_forward_kafka_headers="true").properties.headers
    assert found == {
        "a": "last",
        "large": str(1 << 70),
        "decimal": "1.10",
        "time": "2026-01-01T00:00:00+00:00",
        "map": {"x": [None, True]},
    }


@pytest.mark.parametrize(
    ("value", "key", "props", "told"),
    [
        (None, None, {}, "Its value is null"),
        ({"a": 1}, None, {}, "Its value is of the type dict"),
        ("x", None, {"rabbitmq_routing_key": "${key}"}, r"It has no key, which \$\{key\}"),
        ("x", b"\xff", {"rabbitmq_routing_key": "${key}"}, "Its key is no text of UTF-8"),
        ("x", "k" * 256, {"rabbitmq_routing_key": "${key}"}, "The routing key has more than 255 bytes"),
        ("x", "k" * 256, {"rabbitmq_forward_kafka_key": "true"}, "The key, which is to be the correlation id"),
    ],
)
def test_what_cannot_be_a_message_is_a_bad_record(value: Any, key: Any, props: dict[str, str], told: str) -> None:
    with pytest.raises(DataError, match=told):
        message(value, key=key, **props)


def test_options_that_contradict_each_other_are_refused() -> None:
    for config, props, told in (
        (RabbitMQSourceConfig, {"rabbitmq.queue": "q"}, "The queue q has no topic"),
        (RabbitMQSourceConfig, {**SOURCE, "rabbitmq.queue": "q,q"}, "names a queue twice"),
        (RabbitMQSourceConfig, {**SOURCE, "rabbitmq.queue.topic.map": "{"}, "It is no JSON"),
        (RabbitMQSourceConfig, {**SOURCE, "rabbitmq.requested.frame.max": "7"}, "It must be 0, or from 4096"),
        (RabbitMQSinkConfig, {}, r"Set rabbitmq\.exchange"),
    ):
        with pytest.raises(ConfigError, match=told):
            config.parse(props)
