"""The embedded broker for real: data, transactions, crashes, leases."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from connect.errors import ConfigError, ConnectError
from equipment.brokers.topics import admin_client
from equipment.proofs import thorough
from equipment.waiting import wait_until
from worker.cli.servers.broker import broker as broker_command
from worker.embedded.broker.server import BrokerConfig, BrokerInfo, EmbeddedBroker

LEASE = """
import sys
from pathlib import Path
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
with EmbeddedBroker(BrokerConfig(folder=Path(sys.argv[1]), port=0)).lease() as info:
    print(info.pid, info.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


def produce(bootstrap: str, topic: str, *values: str, **settings: object) -> None:
    in_order = {"message.timeout.ms": 30000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **in_order, **settings})
    errors: list[object] = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(40) == 0
    assert errors == [None] * len(values)


def consume(bootstrap: str, topic: str, count: int, **settings: object) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-reader", **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return read(consumer, count)
    finally:
        consumer.close()


def read(consumer: Consumer, count: int, seconds: float = 30.0) -> list[str]:
    values: list[str] = []
    deadline = time.monotonic() + seconds
    while len(values) < count and time.monotonic() < deadline:
        messages = consumer.consume(100, 0.2)
        values += [(message.value() or b"").decode() for message in messages if message.error() is None]
    return values


@pytest.fixture(scope="module")
def own(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that tests start, kill and stop. Each test starts it, unless it runs since a test before."""
    embedded = EmbeddedBroker(BrokerConfig(folder=tmp_path_factory.mktemp("own") / "own broker", port=0))
    yield embedded
    embedded.stop()


@pytest.fixture
def leased(broker_jars: tuple[Path, ...], tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker of this test's own, to be leased."""
    embedded = EmbeddedBroker(BrokerConfig(folder=tmp_path / "own broker", port=0))
    yield embedded
    embedded.stop()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts processes that hold a lease on the broker of this test."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", LEASE, str(tmp_path / "own broker")]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_topic_is_made_by_producing_and_read_back(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, "a", "b")
    assert consume(bootstrap, topic, 2) == ["a", "b"]
    assert len(admin_client(bootstrap).list_topics(topic).topics[topic].partitions) == 1


@pytest.mark.parametrize("codec", [*thorough("gzip", "snappy", "lz4"), "zstd"])
def test_every_codec(bootstrap: str, topic: str, codec: str) -> None:
    values = ["x" * 1000] * 20
    produce(bootstrap, topic, *values, **{"compression.type": codec, "linger.ms": 50})
    assert consume(bootstrap, topic, 20) == values


def test_records_of_long_ago_are_kept(bootstrap: str, topic: str) -> None:
    client = admin_client(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, "old", timestamp=86_400_000)
    assert producer.flush(30) == 0
    assert consume(bootstrap, topic, 1) == ["old"]
    (described,) = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    assert described.result(30)["retention.ms"].value == "-1"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_both_protocols(bootstrap: str, topic: str, protocol: str) -> None:
    produce(bootstrap, topic, "a", "b", "c")
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "group.protocol": protocol, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        assert read(consumer, 3) == ["a", "b", "c"]
        consumer.commit(asynchronous=False)
        (position,) = consumer.committed([TopicPartition(topic, 0)], 30)
        assert position.offset == 3
    finally:
        consumer.close()


def test_a_transaction_is_seen_whole_or_not_at_all(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(30)
        end(30)
    assert consume(bootstrap, topic, 1, **{"isolation.level": "read_committed"}) == ["committed"]


def test_a_killed_broker_comes_back_where_it_was_with_its_records(own: EmbeddedBroker, topic: str) -> None:
    before = own.start()
    produce(before.bootstrap_servers, topic, "first", acks="all")
    own.kill()
    assert own.status() is None
    after = own.start()
    assert after.bootstrap_servers == before.bootstrap_servers
    assert after.pid != before.pid
    produce(after.bootstrap_servers, topic, "second")
    assert consume(after.bootstrap_servers, topic, 2) == ["first", "second"]


def test_killed_by_somebody_else_and_restarted_at_once(own: EmbeddedBroker) -> None:
    before = own.start()
    os.kill(before.pid, signal.SIGKILL)
    assert own.start().bootstrap_servers == before.bootstrap_servers


def test_a_stopped_broker_keeps_its_records_and_its_address(own: EmbeddedBroker, topic: str) -> None:
    before = own.start()
    produce(before.bootstrap_servers, topic, "kept")
    assert own.stop()
    assert not own.stop()
    after = own.start()
    assert after.bootstrap_servers == before.bootstrap_servers
    assert consume(after.bootstrap_servers, topic, 1) == ["kept"]


def test_starting_twice_is_starting_once(own: EmbeddedBroker) -> None:
    assert own.start().pid == own.start().pid


def test_processes_that_lease_at_once_share_a_broker_that_the_last_of_them_stops(
    leased: EmbeddedBroker, holder: Callable[[], subprocess.Popen[str]]
) -> None:
    """A holder that is killed keeps nothing running either."""
    killed, *others = [holder() for _ in range(3)]
    told = {process.stdout.readline() for process in (killed, *others) if process.stdout is not None}
    assert len(told) == 1
    with leased.lease() as own:
        assert told == {f"{own.pid} {own.bootstrap_servers}\n"}
        assert _running(leased).leases == 4
    killed.kill()
    killed.wait()
    wait_until("two leases are left", lambda: _running(leased).leases == 2)
    for other in others:
        assert _running(leased).pid == own.pid
        other.communicate()
        assert other.returncode == 0
    assert leased.status() is None


def test_a_broker_that_was_started_outlives_its_leases(leased: EmbeddedBroker) -> None:
    with leased.lease() as info:
        assert not info.explicit
        leased.start()
    assert _running(leased).explicit
    assert leased.stop()
    with leased.lease():
        pass
    assert leased.status() is None


def test_a_process_id_that_was_given_to_another_process_is_not_the_broker(own: EmbeddedBroker) -> None:
    info = own.start()
    own.kill()
    text = (info.folder / "broker.json").read_text(encoding="utf-8")
    stale = text.replace(f'"pid": {info.pid}', f'"pid": {os.getpid()}')
    (info.folder / "broker.json").write_text(stale, encoding="utf-8")
    assert own.status() is None
    assert not own.stop()
    assert own.start().pid not in {os.getpid(), info.pid}


def test_a_broker_whose_starter_died_before_it_wrote_it_down_is_replaced(own: EmbeddedBroker) -> None:
    lost = own.start()
    (lost.folder / "broker.json").unlink()
    assert own.status() is None
    assert own.start().pid != lost.pid
    assert not Path(f"/proc/{lost.pid}/exe").exists()


def test_a_broker_that_does_not_come_up_is_an_error_with_the_end_of_its_log(
    broker_jars: tuple[Path, ...], tmp_path: Path
) -> None:
    config = BrokerConfig(folder=tmp_path, port=0, properties={"num.partitions": "many"})
    with pytest.raises(ConnectError) as caught:
        EmbeddedBroker(config).start()
    assert str(tmp_path / "broker.log") in str(caught.value)
    assert "Invalid value many for configuration num.partitions" in str(caught.value)


def test_a_broker_that_is_late_is_killed(broker_jars: tuple[Path, ...], tmp_path: Path) -> None:
    embedded = EmbeddedBroker(BrokerConfig(folder=tmp_path, port=0, start_timeout=0.1))
    with pytest.raises(ConnectError, match=r"not ready after 0\.1 s and was killed"):
        embedded.start()
    assert embedded.status() is None


def test_other_settings_than_the_running_broker_has_are_refused(own: EmbeddedBroker) -> None:
    folder = own.start().folder
    other = EmbeddedBroker(BrokerConfig(folder=folder, properties={"num.partitions": "3"}))
    with pytest.raises(ConfigError, match=r"3 for configuration num\.partitions: .* stop it first"):
        other.start()
    with pytest.raises(ConfigError, match=r"1 for configuration port: .* stop it first"):
        EmbeddedBroker(BrokerConfig(folder=folder, port=1)).start()


def test_the_commands_start_tell_and_stop(broker_jars: tuple[Path, ...], tmp_path: Path) -> None:
    runner, folder = CliRunner(), ["--folder", str(tmp_path / "cli")]
    try:
        assert runner.invoke(broker_command, ["status", *folder]).exit_code == 3
        started = runner.invoke(broker_command, ["start", *folder, "--port", "0", "--property", "num.partitions=2"])
        assert started.exit_code == 0, started.output
        told = runner.invoke(broker_command, ["status", *folder])
        assert told.exit_code == 0
        assert told.stdout == started.stdout
        assert "Apache Kafka 4.3.1 runs until `sluice broker stop`." in told.output
        assert "leases" not in told.output, "nobody has one"
        assert runner.invoke(broker_command, ["start", *folder, "--port", "1"]).exit_code == 1
    finally:
        stopped = runner.invoke(broker_command, ["stop", *folder])
    assert (stopped.exit_code, stopped.output) == (0, "Stopped.\n")
    assert runner.invoke(broker_command, ["status", *folder]).exit_code == 3


def _running(embedded: EmbeddedBroker) -> BrokerInfo:
    info = embedded.status()
    assert info is not None
    return info
