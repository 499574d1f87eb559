"""Ranges of offsets, read from a broker to their ends."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from connect.bulk import OffsetRange
from connect.internals.consumption.ranges import RangeReader, RangesGoneError, RangesStalledError
from equipment.brokers.topics import create_topic, produce

pytestmark = pytest.mark.integration


def read(
    bootstrap: str, *ranges: OffsetRange, most: int = 7, patience: float = 60.0, **more: str
) -> dict[int, list[int]]:
    """The offsets that are read of each partition."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "ranges",
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    found: dict[int, list[int]] = {}
    with RangeReader(settings, ranges, most, patience) as reader:
        for batch in reader.batches():
            assert 0 < len(batch) <= most
            for partition, offset in zip(batch.partitions, batch.offsets, strict=True):
                found.setdefault(partition, []).append(offset)
    return found


def test_ranges_of_several_partitions_are_read_in_order_and_no_further(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=3)
    for partition in range(3):
        produce(bootstrap, topic, [b"x"] * 50, partition)
    ranges = [OffsetRange(topic, 0, 3, 20), OffsetRange(topic, 1, 0, 50), OffsetRange(topic, 2, 9, 9)]
    assert read(bootstrap, *ranges) == {0: list(range(3, 20)), 1: list(range(50))}


def test_ranges_of_several_topics_are_batches_of_one_topic_each(bootstrap: str, topic: str) -> None:
    names = [topic, f"{topic}-other"]
    for name in names:
        create_topic(bootstrap, name)
        produce(bootstrap, name, [name.encode()] * 4)
    settings = {"bootstrap.servers": bootstrap, "group.id": "ranges"}
    with RangeReader(settings, [OffsetRange(name, 0, 1, 3) for name in names], 100) as reader:
        batches = [(batch.topic, list(batch.values)) for batch in reader.batches()]
    assert sorted((name, value) for name, values in batches for value in values) == sorted(
        (name, name.encode()) for name in names for _ in range(2)
    )
    assert all(value == name.encode() for name, values in batches for value in values)


def test_large_records_come_in_smaller_batches(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    for _ in range(300):
        producer.produce(topic, b"x" * 200_000, partition=0)
    assert producer.flush(60) == 0
    with RangeReader(
        {"bootstrap.servers": bootstrap, "group.id": "ranges"}, [OffsetRange(topic, 0, 0, 300)], 1000
    ) as reader:
        sizes = [len(batch) for batch in reader.batches()]
    assert sum(sizes) == 300
    assert max(sizes) <= 100


def test_one_consumer_reads_ranges_one_after_the_other(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, partitions=3)
    for partition in range(3):
        produce(bootstrap, topic, [b"%d" % partition] * 50, partition)
    with RangeReader(
        {"bootstrap.servers": bootstrap, "group.id": "ranges"}, [OffsetRange(topic, 0, 0, 20)], 7
    ) as reader:
        found = [[value for batch in reader.batches() for value in batch.values]]
        for partition in (2, 1):
            reader.go_on([OffsetRange(topic, partition, 10, 30)])
            found.append([value for batch in reader.batches() for value in batch.values])
    assert found == [[b"0"] * 20, [b"2"] * 20, [b"1"] * 20]


def test_offsets_without_records_end_a_range(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for attempt in range(4):
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0)
        assert producer.flush(30) == 0
        if attempt % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    committed = {"isolation_level": "read_committed"}
    assert read(bootstrap, OffsetRange(topic, 0, 0, 4), **committed) == {0: [0]}
    assert read(bootstrap, OffsetRange(topic, 0, 4, 8), **committed) == {0: [4]}
    assert read(bootstrap, OffsetRange(topic, 0, 5, 8), **committed) == {}


def test_records_that_are_gone_are_an_error(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"x"] * 3)
    with pytest.raises(RangesGoneError, match=rf"from topic {topic}, partition 0, offset 7 no longer exist: retention"):
        read(bootstrap, OffsetRange(topic, 0, 7, 9))


def test_records_that_do_not_come_are_waited_for_no_longer_than_that(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"x"] * 3)
    with pytest.raises(
        RangesStalledError, match=f"topic {topic}, partition 0 before offset 9 came for 0 s: the brokers"
    ):
        read(bootstrap, OffsetRange(topic, 0, 0, 9), patience=0.1)
