"""Two workers share an offsets topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from equipment.brokers.topics import read_topic
from worker.config.worker import DistributedConfig
from worker.stores.offset.kafka import KafkaOffsetStore
from worker.stores.offset.store import offset_key

pytestmark = pytest.mark.integration


@pytest.fixture
def store(props: dict[str, str]) -> Iterator[Callable[..., KafkaOffsetStore]]:
    made: list[KafkaOffsetStore] = []

    def make(support: str = "disabled") -> KafkaOffsetStore:
        own = props | {"exactly.once.source.support": support}
        made.append(KafkaOffsetStore(DistributedConfig.parse(own), own))
        made[-1].start()
        return made[-1]

    yield make
    for item in made:
        item.close()


def test_what_one_worker_puts_the_other_gets(store: Callable[..., KafkaOffsetStore]) -> None:
    one, other = store(), store()
    keys = [offset_key("c", {"file": str(number)}) for number in range(200)]
    one.put({key: b'{"position":%d}' % number for number, key in enumerate(keys)})
    assert other.get([keys[7], offset_key("c", {}), keys[0]]) == [b'{"position":7}', None, b'{"position":0}']
    other.put({keys[7]: None, keys[8]: b"{}"})
    assert one.get(keys[7:9]) == [None, b"{}"]
    assert len(one.items()) == 199
    assert store().items() == one.items()
    one.put({})


def test_the_bytes_that_are_there_are_written_again(
    props: dict[str, str], store: Callable[..., KafkaOffsetStore]
) -> None:
    theirs, ours = b'["c",{"b":2,"a":1}]', offset_key("c", {"a": 1, "b": 2})
    one = store()
    producer = Producer({"bootstrap.servers": props["bootstrap.servers"], "partitioner": "murmur2_random"})
    producer.produce(props["offset.storage.topic"], value=b"{}", key=theirs)
    producer.produce(props["offset.storage.topic"], value=b"{}", key=b"nonsense")
    assert producer.flush(30) == 0
    assert one.get([ours]) == [b"{}"]
    one.put({ours: b'{"position":1}'})
    assert one.items() == {theirs: b'{"position":1}'}
    one.put({ours: None})
    assert store().items() == {}
    keys = {item.key() for item in read_topic(props["bootstrap.servers"], props["offset.storage.topic"])}
    assert ours not in keys


@pytest.mark.parametrize(("support", "expected"), [("enabled", [None]), ("preparing", [b"{}"])])
def test_offsets_of_aborted_transactions_do_not_count(
    support: str, expected: list[bytes | None], props: dict[str, str], store: Callable[..., KafkaOffsetStore]
) -> None:
    one = store(support)
    key = offset_key("c", {"file": "x"})
    producer = Producer({"bootstrap.servers": props["bootstrap.servers"], "transactional.id": props["group.id"]})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(props["offset.storage.topic"], value=b"{}", key=key)
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    assert one.get([key]) == expected
