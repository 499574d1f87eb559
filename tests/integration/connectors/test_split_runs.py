"""What an executor does with a split, in this process: a task of the connector, read into topics on the broker."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from connect.bulk_source import KafkaSettings
from connect.config import Config
from connect.data import SourceRecord
from connect.internals.chain.tolerance import ErrorPolicy
from connect.internals.plugins import class_name
from connect.source import SourceConnector, SourceTask
from connect.testing import StoredOffsets
from connect.testing.contexts import ConnectorTestContext
from connectors.directory import DirectorySourceConnector
from equipment.brokers.topics import create_topic, read_topic

pytest.importorskip("pyspark")

from connectors.spark.engine.source_executor import KnownOffsets, SplitOrders, SplitOutcome, SplitRun
from connectors.spark.publishing.publisher import Publication


@pytest.fixture
def orders(bootstrap: str, topic: str, tmp_path: Path) -> SplitOrders:
    """The orders for the one split of a folder of two files."""
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("".join(f"{name} {number}\n" for number in range(30)))
    props = {"path": str(tmp_path), "topic": topic, "settle.ms": "0", "batch.size": "10"}
    connector = DirectorySourceConnector(
        DirectorySourceConnector.config_class.parse(props), ConnectorTestContext(StoredOffsets())
    )
    connector.start()
    (split,) = connector.splits(1)
    chain = {
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "header.converter": "SimpleHeaderConverter",
    }
    settings = KafkaSettings({}, {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    publication = Publication(topic, chain, settings, ErrorPolicy())
    return SplitOrders("DirectorySource", dict(split), publication, KnownOffsets())


def run(orders: SplitOrders) -> SplitOutcome:
    """Run it as it arrives in an executor."""
    outcome: SplitOutcome = pickle.loads(pickle.dumps(SplitRun(pickle.loads(pickle.dumps(orders))).run()))
    return outcome


def ready(orders: SplitOrders, bootstrap: str, topic: str, folder: Path) -> SplitOrders:
    create_topic(bootstrap, topic)
    partitions = [{"filename": str(folder / f"{name}.txt")} for name in "ab"]
    orders.offsets.learn(partitions, [None, None])
    return replace(orders, publication=orders.publication.with_topics({topic: None}))


def test_it_says_what_it_has_to_know(orders: SplitOrders, bootstrap: str, topic: str, tmp_path: Path) -> None:
    outcome = run(orders)
    assert (outcome.at_end, list(outcome.unknown)) == (False, [{"filename": str(tmp_path / "a.txt")}])
    orders.offsets.learn(outcome.unknown, [None])
    outcome = run(orders)
    assert (outcome.at_end, outcome.published.missing, outcome.published.read) == (False, (topic,), 0)
    outcome = run(ready(orders, bootstrap, topic, tmp_path))
    assert (outcome.at_end, outcome.published.error, outcome.published.written) == (True, None, {topic: 60})
    assert [offset["row"] for _, offset in outcome.published.offsets] == [30, 30]
    assert len(read_topic(bootstrap, topic)) == 60


def test_it_is_left_in_time_and_goes_on_from_its_offsets(
    orders: SplitOrders, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    orders = replace(ready(orders, bootstrap, topic, tmp_path), seconds=0.0)
    runs = 0
    while not (outcome := run(orders)).at_end:
        orders.offsets.reached(outcome.published.offsets)
        assert outcome.published.read == 10
        runs += 1
    assert runs == 6
    found = [message.value().decode() for message in read_topic(bootstrap, topic)]
    assert found == [f"{name} {number}" for name in "ab" for number in range(30)]


class PassingTask(SourceTask[Config]):
    """Reads one record, and leaves out what follows."""

    def start(self) -> None:
        self._is_read = False

    def poll(self) -> list[SourceRecord] | None:
        if self._is_read:
            return None
        self._is_read = True
        self.context.pass_offset({"p": 1}, {"o": 9})
        return [SourceRecord(self.config.originals["topic"], "x", source_partition={"p": 1}, source_offset={"o": 1})]

    def drained(self) -> bool:
        return self._is_read


class PassingConnector(SourceConnector[Config]):
    """Passes an offset that no record has."""

    task_class = PassingTask


def test_an_offset_that_no_record_has_is_reached(orders: SplitOrders, bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    properties = {**orders.publication.properties, "plugin.import.allowlist": f"{__name__}.*"}
    publication = replace(orders.publication.with_topics({topic: None}), properties=properties)
    outcome = run(SplitOrders(class_name(PassingConnector), {"topic": topic}, publication, KnownOffsets()))
    assert outcome.at_end, outcome.published.error
    assert (outcome.published.written, list(outcome.published.offsets)) == ({topic: 1}, [({"p": 1}, {"o": 9})])


def test_an_error_of_the_connector_is_told_with_its_trace(
    orders: SplitOrders, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe bad\n")
    outcome = run(ready(orders, bootstrap, topic, tmp_path))
    published = outcome.published
    assert outcome.at_end is False
    assert published.error is not None
    assert "Tolerance exceeded in error handler" in published.error
    assert "Traceback" in published.trace
    assert (published.read, len(published.failures)) == (30, 1)
    assert [offset["row"] for _, offset in published.offsets] == [30]


def test_nothing_of_it_shows_a_secret(orders: SplitOrders) -> None:
    settings = KafkaSettings({"sasl.jaas.config": "hush"}, {"sasl.password": "hush"})
    secret = replace(orders, publication=replace(orders.publication, settings=settings), task={"password": "hush"})
    assert "hush" not in repr(secret)
