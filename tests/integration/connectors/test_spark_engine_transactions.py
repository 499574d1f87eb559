"""The transactions of exactly-once sources that are run by Spark, without Spark: processes that come too late."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect.bulk_source import Claim, KafkaSettings, TransactionOrders
from connect.errors import ConnectError
from connect.internals.chain.tolerance import ErrorPolicy
from connect.internals.delivery.stored_offsets import offset_key
from connect.internals.delivery.transaction import SupersededError, Transaction
from connectors.directory import DirectorySourceConnector
from connectors.spark.engine.source_executor import KnownOffsets, SplitOrders, SplitRun
from connectors.spark.publishing.publisher import Publication, failure_digest
from equipment.brokers.topics import create_topic, ordered_producer, read_topic

pytestmark = [pytest.mark.integration]

CHAIN = {
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "header.converter": "SimpleHeaderConverter",
}
SIZES = {"a.txt": 300, "b.txt": 200}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, count in SIZES.items():
        write(folder / name, [f"{name} {number}" for number in range(count)])
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, (time.time() - 60, time.time() - 60))


def values(bootstrap: str, topic: str) -> list[str]:
    """What a consumer of committed records reads."""
    return sorted(message.value().decode() for message in read_topic(bootstrap, topic))


@pytest.fixture
def offsets_topic(bootstrap: str, topic: str) -> str:
    """The offsets topic, of this test alone; the topic of the records is made, too."""
    create_topic(bootstrap, topic)
    create_topic(bootstrap, f"{topic}-offsets", 1, **{"cleanup.policy": "compact"})
    return f"{topic}-offsets"


class Driver:
    """Claims a connector, as the task of a worker does, and gives orders for its slot."""

    def __init__(self, bootstrap: str, topic: str, offsets_topic: str) -> None:
        self.bootstrap, self.topic, self.offsets_topic = bootstrap, topic, offsets_topic

    def claim(self) -> TransactionOrders:
        """Write a claim, and fence the slot."""
        key = offset_key("", {"claims": self.topic})
        written: list[int] = []
        writer = ordered_producer(self.bootstrap)
        writer.produce(self.offsets_topic, b"{}", key, on_delivery=lambda _, message: written.append(message.offset()))
        writer.flush()
        orders = self.orders(Claim(key, self.offsets_topic, 0, written[0] + 1))
        Producer(dict(orders.producer)).init_transactions(30)
        return orders

    def orders(self, claim: Claim) -> TransactionOrders:
        common: dict[str, str | int | bool] = {"bootstrap.servers": self.bootstrap}
        producer = {**common, "transactional.id": f"{self.topic}-1", "partitioner": "murmur2_random"}
        return TransactionOrders(self.topic, claim, producer, {**common, "group.id": self.topic}, 60.0)


@pytest.fixture
def driver(bootstrap: str, topic: str, offsets_topic: str) -> Driver:
    return Driver(bootstrap, topic, offsets_topic)


def transaction(orders: TransactionOrders) -> tuple[Transaction, Producer]:
    producer = Producer(dict(orders.producer))
    return Transaction(orders, producer), producer


def test_records_are_committed_with_their_offset(driver: Driver) -> None:
    within, producer = transaction(driver.claim())
    within.begin()
    producer.produce(driver.topic, b"one")
    producer.flush()
    assert values(driver.bootstrap, driver.topic) == []
    within.commit([({"p": "p"}, {"o": 1})])
    assert values(driver.bootstrap, driver.topic) == ["one"]
    assert read_topic(driver.bootstrap, driver.offsets_topic)[-1].value() == b'{"o":1}'


def test_a_process_that_began_before_a_newer_claim_is_fenced(driver: Driver) -> None:
    within, producer = transaction(driver.claim())
    within.begin()
    producer.produce(driver.topic, b"lost")
    producer.flush()
    driver.claim()
    with pytest.raises(SupersededError):
        within.commit([({"p": "p"}, {"o": 1})])
    assert values(driver.bootstrap, driver.topic) == []


def test_a_process_that_begins_after_a_newer_claim_sends_nothing(driver: Driver) -> None:
    first = driver.claim()
    second = driver.claim()
    newer, producer = transaction(second)
    newer.begin()
    late, _ = transaction(first)
    with pytest.raises(SupersededError):
        late.begin()
    producer.produce(driver.topic, b"lost")
    with pytest.raises(SupersededError):
        newer.commit([])
    again, _ = transaction(second)
    again.begin()
    assert again.checked >= second.claim.offset


def test_a_second_attempt_ends_the_first_and_does_nothing(driver: Driver) -> None:
    orders = driver.claim()
    first, producer = transaction(orders)
    first.begin()
    producer.produce(driver.topic, b"lost")
    second, _ = transaction(orders)
    with pytest.raises(SupersededError):
        second.begin(checks_only=True)
    with pytest.raises(SupersededError):
        first.commit([])


def test_a_transaction_that_has_expired_says_how_to_have_longer_ones(driver: Driver) -> None:
    orders = driver.claim()
    within, producer = transaction(replace(orders, timeout=0.0))
    within.begin()
    producer.produce(driver.topic, b"lost")
    producer.flush()
    Producer(dict(orders.producer)).init_transactions(30)
    with pytest.raises(ConnectError, match=r"raise producer\.override\.transaction\.timeout\.ms, now 0"):
        within.commit([])


def split(driver: Driver, folder: Path, orders: TransactionOrders, **more: Any) -> SplitOrders:
    """The orders for a split of all files of a folder."""
    publication = Publication(
        driver.topic, CHAIN, KafkaSettings({}, {}), ErrorPolicy(tolerates_errors=True), {driver.topic: None}, orders
    )
    config = {"path": str(folder), "topic": driver.topic, "settle.ms": "0", "scan.interval.ms": "10"}
    connector = DirectorySourceConnector(DirectorySourceConnector.config_class.parse(config), _Asked())
    connector.start()
    (only,) = connector.splits(1) or ()
    connector.stop()
    task = {key: value for key, value in only.items() if value is not None}
    return SplitOrders("DirectorySource", task, publication, _Nothing(), **more)


class _Nothing(KnownOffsets):
    """Knows that nothing is stored."""

    def offsets(self, partitions: Any) -> Any:
        return [None for _ in partitions]


class _Asked:
    """The context of a connector for which nothing is stored."""

    offset_storage_reader = _Nothing()

    def wait(self, seconds: float) -> bool:
        return True

    def request_task_reconfiguration(self) -> None: ...

    def raise_error(self, error: Exception) -> None: ...


def test_records_that_are_left_out_are_told_of_before_their_offsets_are_passed(driver: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "lines"
    folder.mkdir()
    write(folder / "a.jsonl", ['{"a": 1}', "no json", '{"a": 2}'])
    orders = driver.claim()
    first = SplitRun(split(driver, folder, orders, seconds=60.0)).run()
    assert (first.is_unreported, first.at_end, first.published.offsets, first.published.read) == (True, False, (), 0)
    (bad,) = first.published.failures
    told = frozenset({failure_digest(bad)})
    second = SplitRun(split(driver, folder, orders, seconds=60.0, reported=told)).run()
    assert (second.is_unreported, second.at_end) == (False, True)
    assert [offset["row"] for _, offset in second.published.offsets if offset] == [3]
    assert len(values(driver.bootstrap, driver.topic)) == 2


def test_an_attempt_of_sparks_own_only_asks_to_look_again(driver: Driver, files: Path) -> None:
    outcome = SplitRun(split(driver, files, driver.claim(), seconds=60.0), is_again=True).run()
    assert outcome.is_superseded
    assert values(driver.bootstrap, driver.topic) == []
