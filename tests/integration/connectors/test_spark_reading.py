"""The records of splits as the Python of Spark's driver and executors reads them."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from connect.bulk import OffsetRange
from connectors.spark.decoding.kafka_reader import KafkaReader
from equipment.brokers.topics import create_topic, produce

pytestmark = pytest.mark.integration


def test_splits_are_read_together_each_in_its_order(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=3)
    for partition in range(3):
        produce(bootstrap, topic, [b"%d %d" % (partition, offset) for offset in range(400)], partition)
    splits = [
        OffsetRange(topic, 0, 0, 200),
        OffsetRange(topic, 1, 10, 380),
        OffsetRange(topic, 2, 5, 5),
        # The rest of a partition that another split has begun.
        OffsetRange(topic, 0, 200, 400),
        OffsetRange(topic, 2, 7, 8),
    ]
    reader = KafkaReader(splits, {"bootstrap.servers": bootstrap, "group.id": "reading"}, most=150)
    found: dict[int, list[tuple[int, int, bytes]]] = {number: [] for number in range(len(splits))}
    for number, records in reader.read_together():
        rows = records.to_pylist()
        assert 0 < len(rows) <= 150
        found[number] += [(row["partition"], row["offset"], row["value"]) for row in rows]
    assert found == {
        number: [(split.partition, at, b"%d %d" % (split.partition, at)) for at in range(split.first, split.end)]
        for number, split in enumerate(splits)
    }


def test_what_a_header_says_of_a_value_comes_before_it(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"first", headers=[("frame", b"\x01"), ("frame", b"\x02")])
    producer.produce(topic, b"second", headers=[("other", b"\x01")])
    producer.produce(topic, None, headers=[("frame", b"\x01")])
    producer.produce(topic, b"fourth")
    assert producer.flush(30) == 0

    def values(**reading: object) -> list[bytes | None]:
        settings = {"bootstrap.servers": bootstrap, "group.id": "reading"}
        reader = KafkaReader([OffsetRange(topic, 0, 0, 4)], settings, **reading)  # type: ignore[arg-type]
        return [row["value"] for _, records in reader.read_together() for row in records.to_pylist()]

    assert values(frame_headers={"frame": b""}) == [b"\x02first", b"second", None, b"fourth"]
    # What reads the headers too finds the values as they are on the topic.
    assert values(frame_headers={"frame": b""}, whole=True) == [b"first", b"second", None, b"fourth"]
