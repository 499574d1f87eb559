"""A compacted topic is read from its beginning and on, and what is written comes back in order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.settings.client import ClientKind
from equipment.brokers.topics import admin_client, create_topic, make_anew, ordered_producer
from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
from worker.errors import UnavailableError
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.compacted import CompactedTopic, TopicRecord

pytestmark = pytest.mark.integration

Make = Callable[..., tuple[CompactedTopic, list[TopicRecord]]]


@pytest.fixture
def make(bootstrap: str, topic: str) -> Iterator[Make]:
    opened: list[CompactedTopic] = []

    def make(
        isolation: str = "read_uncommitted", servers: str = bootstrap, more: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[CompactedTopic, list[TopicRecord]]:
        worker, got = {"bootstrap.servers": servers, **more}, list[TopicRecord]()
        consumer = internal_properties(worker, ClientKind.CONSUMER, "tests", {"isolation.level": isolation})
        producer = internal_properties(worker, ClientKind.PRODUCER, "tests")
        opened.append(CompactedTopic(topic, consumer, producer, got.append))
        return opened[-1], got

    yield make
    for compacted in opened:
        compacted.close()


def transactional(bootstrap: str, topic: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(30)
    return producer


def test_all_that_is_there_is_read_before_the_start_returns(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, 3, **{"cleanup.policy": "compact"})
    first, _ = make()
    first.start(30)
    first.write([(b"%d" % number, b"v") for number in range(1000)]).result(30)
    first.send(b"7", None).result(30)
    second, got = make()
    second.start(30)
    assert len(got) == 1001
    assert sorted({record.key for record in got}) == sorted(b"%d" % number for number in range(1000))
    assert [record.value for record in got if record.key == b"7"] == [b"v", None]
    assert min(record.timestamp for record in got) > 1_600_000_000_000


def test_partitions_that_were_empty_at_the_start_are_read_too(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, 5)
    writer = ordered_producer(bootstrap)
    writer.produce(topic, b"before", b"k", partition=3)
    assert writer.flush(30) == 0
    compacted, got = make()
    compacted.start(30)
    assert [(record.partition, record.value) for record in got] == [(3, b"before")]
    for partition in range(5):
        writer.produce(topic, b"after", b"k", partition=partition)
    assert writer.flush(30) == 0
    compacted.read_to_end().result(30)
    assert sorted((record.partition, record.offset, record.value) for record in got) == sorted(
        [(3, 0, b"before"), (3, 1, b"after"), *((partition, 0, b"after") for partition in (0, 1, 2, 4))]
    )


def test_what_is_written_has_been_passed_on_when_the_future_is_done(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, 2)
    compacted, got = make()
    compacted.start(30)
    for number in range(50):
        key = b"%d" % (number % 5)
        compacted.write([(key, b"a%d" % number), (key, b"b%d" % number)]).result(30)
        assert [record.value for record in got[-2:]] == [b"a%d" % number, b"b%d" % number]


def test_reading_to_the_end_sees_what_others_wrote(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, 3)
    (writer, _), (reader, got) = make(), make()
    writer.start(30)
    reader.start(30)
    for number in range(30):
        writer.send(b"%d" % number, b"v").result(30)
        reader.read_to_end().result(30)
        assert len(got) == number + 1


def test_markers_and_aborted_records_at_the_end_are_read_over(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic)
    producer = transactional(bootstrap, topic)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"kept")
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"dropped")
    producer.flush(30)
    producer.abort_transaction(30)
    compacted, got = make("read_committed")
    compacted.start(30)
    compacted.read_to_end().result(30)
    assert [record.key for record in got] == [b"kept"]


def test_a_transaction_that_is_under_way_is_waited_for(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic)
    compacted, got = make("read_committed")
    compacted.start(30)
    producer = transactional(bootstrap, topic)
    producer.begin_transaction()
    producer.produce(topic, b"v", b"k")
    assert producer.flush(30) == 0
    reading = compacted.read_to_end()
    with pytest.raises(RetriableError, match="could not be read to its end in time"):
        compacted.read_to_end(0.5).result(30)
    assert not reading.done()
    producer.commit_transaction(30)
    reading.result(30)
    assert [record.key for record in got] == [b"k"]


def test_without_brokers_the_start_fails_and_says_what_to_check(make: Make) -> None:
    compacted, _ = make(servers="127.0.0.1:1")
    with pytest.raises(ConnectError, match=r"bootstrap\.servers"):
        compacted.start(0.5)


def test_what_is_open_at_the_end_fails_and_what_was_sent_is_delivered(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic)
    compacted, _ = make()
    compacted.start(30)
    sent = compacted.send(b"k", b"v")
    compacted.close()
    sent.result(0)
    for refused in (compacted.send(b"k", b"v"), compacted.read_to_end()):
        compacted.close()
        assert "is closed" in str(refused.exception(0))
    again, got = make()
    again.start(30)
    assert [record.key for record in got] == [b"k"]


def test_a_record_that_the_broker_refuses_fails_alone(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, **{"max.message.bytes": "1000"})
    compacted, got = make()
    compacted.start(30)
    error = compacted.send(b"k", b"v" * 5000).exception(30)
    assert isinstance(error, ConnectError)
    assert not isinstance(error, RetriableError)
    compacted.write([(b"k", b"v")]).result(30)
    assert [record.value for record in got] == [b"v"]


def test_a_write_to_a_partition_that_was_added_says_to_restart(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic)
    compacted, _ = make(more={"metadata.max.age.ms": "500"})
    compacted.start(30)
    admin = admin_client(bootstrap)
    admin.create_partitions([NewPartitions(topic, 8)])[topic].result(30)
    keys = [b"%d" % number for number in range(20)]
    errors = wait_until(
        "the producer learns of the partitions",
        lambda: [error for key in keys if (error := compacted.write([(key, b"v")]).exception(30)) is not None],
    )
    assert "restart the worker" in str(errors[0])
    again, got = make()
    again.start(30)
    assert {record.key for record in got} == set(keys)


def test_while_the_broker_is_away_it_goes_on_trying_and_says_so_once(
    broker_jars: tuple[Path, ...], tmp_path: Path, topic: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as info:
        create_topic(info.bootstrap_servers, topic)
        compacted, got = make(servers=info.bootstrap_servers)
        compacted.start(30)
        compacted.write([(b"before", b"v")]).result(30)
    with caplog.at_level(logging.INFO, "worker.kafka.topics.compacted"):
        with pytest.raises(RetriableError):
            compacted.read_to_end(1.0).result(30)
        while_away = compacted.write([(b"while away", b"v")])
        wait_until("the outage is told", lambda: any("cannot be reached" in text for text in caplog.messages))
        with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease():
            while_away.result(60)
            compacted.read_to_end().result(30)
            compacted.close()
    assert [record.key for record in got] == [b"before", b"while away"]
    assert len([text for text in caplog.messages if "cannot be reached" in text]) == 1
    assert len([text for text in caplog.messages if "can be reached again" in text]) == 1


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_topic_that_is_deleted_is_told_once_it_is_read(
    bootstrap: str, topic: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic, 1, **{"cleanup.policy": "compact"})
    compacted, got = make()
    compacted.start(30)
    compacted.write([(b"k", b"v")]).result(30)
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(30)

    def refused() -> str | None:
        try:
            compacted.read_to_end(5.0).result(30)
        except ConnectError as error:
            return str(error)
        return None

    told = f"Topic '{topic}' does not exist any more, noticed at 20"
    assert wait_until("it is missed", refused, 120).startswith(told)
    assert (compacted.refusal or "").startswith(told)
    assert len(errors(caplog)) == 1
    assert len(got) == 1, "what was read stays"


@pytest.mark.thorough
def test_a_topic_that_is_deleted_and_created_again_is_told_once(
    bootstrap: str, topic: str, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(bootstrap, topic, 1, **{"cleanup.policy": "compact"})
    compacted, got = make()
    compacted.start(30)
    compacted.write([(b"%d" % number, b"v") for number in range(10)]).result(30)
    assert compacted.refusal is None
    admin = admin_client(bootstrap)
    admin.delete_topics([topic])[topic].result(30)
    wait_until("it is missed", lambda: compacted.refusal)
    assert compacted.refusal is not None
    assert compacted.refusal.startswith(f"Topic '{topic}' does not exist any more, noticed at 20")
    with pytest.raises(ConnectError, match=f"Topic '{topic}' does not exist any more"):
        compacted.read_to_end(0.5).result(30)
    assert len(errors(caplog)) == 1
    create_topic(bootstrap, topic, 1, **{"cleanup.policy": "compact"})
    told = f"Topic '{topic}' was deleted and created again, or has lost its newest records, noticed at 20"
    wait_until("the other is noticed", lambda: (compacted.refusal or "").startswith(told))
    assert len(errors(caplog)) == 2
    assert len(got) == 10, "what was read stays"
    compacted.write([(b"new", b"v")]).result(30)
    assert (compacted.refusal or "").startswith(told), "until a restart"
    assert len(errors(caplog)) == 2


def test_a_write_into_a_topic_that_was_just_created_again_fails(bootstrap: str, topic: str, make: Make) -> None:
    create_topic(bootstrap, topic, 1, **{"cleanup.policy": "compact"})
    compacted, _ = make()
    compacted.start(30)
    compacted.write([(b"%d" % number, b"v") for number in range(10)]).result(30)
    make_anew(bootstrap, topic)

    def refused() -> str | None:
        try:
            compacted.write([(b"new", b"v")], 5.0).result(30)
        except UnavailableError as error:
            return str(error)
        except RetriableError:  # the client has not heard of the new topic yet
            return None
        raise AssertionError("the record was taken for one of the former topic")

    told = wait_until("the write is refused", refused, 60)
    assert told.startswith((f"Topic '{topic}' does not exist any more", f"Topic '{topic}' was deleted"))
