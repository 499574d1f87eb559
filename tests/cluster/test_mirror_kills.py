"""Whatever is killed, and when: the mirror of committed records is whole, in order, and translates offsets exactly.

One topic of transactions, some of them aborted, is mirrored twice at once: with exactly-once support by two tasks, and
without. Beside the first, checkpoints and heartbeats are written, by tasks that nobody starts again.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest
import requests
from click.testing import CliRunner
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import admin_client, committed, create_topic, read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker
from worker.cli.mirror.command import mirror

KILLS: Final = int(os.environ.get("SLUICE_MIRROR_KILLS", "0"))
"""How many kills there are: each victim once, then any. Without the variable, only the first three."""
VICTIMS: Final = ("worker with new shares", "target", "source", "task", "worker")
FEW: Final = 3
BESIDE: Final = {"checkpoints": "MirrorCheckpointConnector", "heartbeats": "MirrorHeartbeatConnector"}
TOPIC: Final = "orders"
PARTITIONS: Final = 2
"""At first: each time that a worker is killed with new shares there is one more."""
GROUP: Final = "billing"
PATIENCE: Final = 120.0
FOLLOWED: Final = "followed"
"""The group whose checkpoints are looked at."""
MOVES: Final = 3 if KILLS else 1
"""How often the group fails over and back."""
NEWEST: Final = 1000
pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(600 + 60 * KILLS)]


class Writer:
    """Writes transactions to the topic until it is closed, a fourth of which it aborts; begins anew after errors."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.partitions = PARTITIONS
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self._numbers = count()
        self._thread.start()

    def close(self) -> None:
        """Write no more."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": "writer",
                    "transaction.timeout.ms": 20_000,
                    "reconnect.backoff.max.ms": 200,
                    "log_level": 0,
                }
            )
            try:
                producer.init_transactions(20)
                for number in count():
                    self._transaction(producer, aborted=number % 4 == 3)
                    if self._end.wait(0.01):
                        return
            except KafkaException:
                continue

    def _transaction(self, producer: Producer, *, aborted: bool) -> None:
        producer.begin_transaction()
        for _ in range(20):
            number = next(self._numbers)
            producer.produce(TOPIC, b"%d" % number, partition=number % self.partitions)
        if aborted:
            producer.flush(20)
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)


class Flow:
    """The clusters, and the worker of each of the two mirrors, by its alias of the source."""

    def __init__(self, source: ProxiedBroker, target: ProxiedBroker, workers: dict[str, StandaloneWorker]) -> None:
        self.source, self.target, self.workers = source, target, workers
        self.partitions = PARTITIONS
        self.followed: dict[int, int] = {}
        """Up to where the group ``FOLLOWED`` has read the topic, by partition."""
        self._ends = self._client()

    def kill(self, victim: str) -> None:
        """Kill the victim, of each mirror if it is part of one, and start again what does not by itself."""
        match victim:
            case "worker with new shares":
                self._kill_with_new_shares()
            case "worker":
                for worker in self.workers.values():
                    worker.kill()
                    worker.start()
            case "task":
                for worker in self.workers.values():
                    os.kill(worker.task_pid("mirror"), signal.SIGKILL)
            case "source":
                self.source.kill()
                self.source.start()
            case _:
                self.target.kill()
                self.target.start()

    def wait_for_more(self, records: int) -> None:
        """Wait until each mirror has written so many more records."""
        before = {alias: self._end(alias) for alias in self.workers}
        for alias, end in before.items():
            wait_until(f"{alias} goes on", lambda end=end, alias=alias: self._end(alias) >= end + records, PATIENCE)

    def wait_for_those_beside(self) -> None:
        """Wait until another heartbeat is written, and a group that has read all has its new offset at the target."""
        before, beats = self._offset_there(), self._heartbeats()
        self.followed = wait_until("the source tells where it ends", self._ends_at_source, PATIENCE)
        _commit(self.source.bootstrap, TOPIC, self.followed, FOLLOWED)
        wait_until("the group gets on at the target", lambda: self._offset_there() > before, PATIENCE)
        wait_until("a heartbeat comes", lambda: self._heartbeats() > beats, PATIENCE)

    def _ends_at_source(self) -> dict[int, int]:
        places = [TopicPartition(TOPIC, partition) for partition in range(self.partitions)]
        with closing(Consumer({"bootstrap.servers": self.source.bootstrap, "group.id": "ends"})) as ends:
            try:
                return {each.partition: ends.get_watermark_offsets(each, timeout=5)[1] for each in places}
            except KafkaException:
                # It has only just started.
                return {}

    def _offset_there(self) -> int:
        return committed(self.target.bootstrap, FOLLOWED, f"exact.{TOPIC}")[0]

    def _heartbeats(self) -> int:
        return len(read_topic(self.target.bootstrap, "heartbeats"))

    def values(self, broker: ProxiedBroker, topic: str) -> dict[int, list[tuple[int, bytes]]]:
        """The committed records of each partition: their offsets and values."""
        found: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(self.partitions)}
        for message in read_topic(broker.bootstrap, topic):
            found[message.partition()].append((message.offset(), message.value()))
        return found

    def close(self) -> None:
        """Release the client."""
        self._ends.close()

    def _kill_with_new_shares(self) -> None:
        """Kill workers while there is a new partition: that of transactions when a task has it and does not know it.

        Its tasks are frozen before, whatever they do, and wake when their successors run: as former processes that may
        have transactions under way, and have the smaller shares.
        """
        exact, least = self.workers["exact"], self.workers["least"]
        tasks = [exact.task_pid("mirror", number) for number in (0, 1)]
        for task in tasks:
            os.kill(task, signal.SIGSTOP)
        self._grow()
        wait_until("the larger share is written", lambda: self._is_shared(exact), PATIENCE)
        exact.signal(signal.SIGKILL)
        exact.wait()
        exact.start()
        least.kill()
        least.start()
        for number, task in enumerate(tasks):
            wait_until(
                "another process runs", lambda n=number, task=task: exact.task_pid("mirror", n) != task, PATIENCE
            )
            with suppress(ProcessLookupError):
                os.kill(task, signal.SIGCONT)
        for alias in self.workers:
            wait_until(f"{alias} has the partition", lambda alias=alias: self._is_there(alias), PATIENCE)

    def _grow(self) -> None:
        admin = admin_client(self.source.bootstrap)
        admin.create_partitions([NewPartitions(TOPIC, self.partitions + 1)])[TOPIC].result(30)
        self.partitions += 1

    def _is_shared(self, worker: StandaloneWorker) -> bool:
        """Whether the config topic has the newest partition in the share of a task."""
        answer = worker.get("connectors/mirror/tasks")
        new = f"{TOPIC}-{self.partitions - 1}"
        tasks = answer.json() if answer.ok else []
        return any(new in task["config"]["task.assigned.partitions"].split(",") for task in tasks)

    def _is_there(self, alias: str) -> bool:
        topics = admin_client(self.target.bootstrap).list_topics(timeout=30).topics
        return len(topics[f"{alias}.{TOPIC}"].partitions) == self.partitions

    def _end(self, alias: str) -> int:
        try:
            places = [TopicPartition(f"{alias}.{TOPIC}", partition) for partition in range(self.partitions)]
            return sum(int(self._ends.get_watermark_offsets(place, timeout=5)[1]) for place in places)
        except KafkaException:
            # A client that has asked for a topic before it was there may take it for absent ever after.
            self._ends.close()
            self._ends = self._client()
            return 0

    def _client(self) -> Consumer:
        return Consumer({"bootstrap.servers": self.target.bootstrap, "group.id": "ends", "log_level": 0})


@pytest.fixture
def flow(tmp_path: Path, broker_jars: tuple[Path, ...]) -> Iterator[Flow]:
    """Both mirrors, running."""
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(ProxiedBroker.running(tmp_path / name, broker_jars, 1)) for name in ("source", "target")
        )
        create_topic(source.bootstrap, TOPIC, PARTITIONS)
        # What a killed worker leaves is over soon, so that it can be started again at once. Who freezes a task is not
        # to freeze others.
        transactions = {"exactly_once_source_support": "enabled", "task_isolation": "process"}
        exact = DistributedWorker(tmp_path / "exact", target.bootstrap, **transactions)
        least = DistributedWorker(tmp_path / "least", target.bootstrap)
        workers: dict[str, StandaloneWorker] = {"exact": exact, "least": least}
        for worker in workers.values():
            stack.callback(worker.close)
            worker.start()
        for alias, worker in workers.items():
            config = _connector(alias, source.bootstrap, target.bootstrap, tasks=2 if alias == "exact" else 1)
            _put(worker, "mirror", config)
        for name, kind in BESIDE.items():
            _put(exact, name, _beside(kind, source.bootstrap, target.bootstrap))
        made = Flow(source, target, workers)
        stack.callback(made.close)
        yield made


def _put(worker: StandaloneWorker, name: str, config: dict[str, str]) -> None:
    requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=60).raise_for_status()


def _beside(kind: str, source: str, target: str) -> dict[str, str]:
    """A connector that goes on by itself, or not at all. It gives up a broker that is away before that is back."""
    return {
        "connector.class": kind,
        "source.cluster.alias": "exact",
        "target.cluster.alias": "to-exact",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "groups": f"{GROUP}|{FOLLOWED}",
        "topics": TOPIC,
        "admin.timeout.ms": "3000",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
    }


def _connector(alias: str, source: str, target: str, *, tasks: int) -> dict[str, str]:
    return {
        "connector.class": "MirrorSourceConnector",
        "tasks.max": str(tasks),
        "refresh.topics.interval.seconds": "1",
        "source.cluster.alias": alias,
        "target.cluster.alias": f"to-{alias}",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "topics": TOPIC,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "restart.policy": "on-failure",
        "restart.backoff.ms": "100",
        "restart.backoff.max.ms": "1000",
        "restart.limit": "1000",
    }


def test_kills_leave_the_mirror_whole_and_its_offsets_exact(flow: Flow, tmp_path: Path) -> None:
    seed = int(os.environ.get("SLUICE_MIRROR_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_MIRROR_SEED={seed}")
    chance = random.Random(seed)
    writer = Writer(flow.source.bootstrap)
    try:
        for number in range(KILLS or FEW):
            flow.wait_for_more(chance.randrange(20, 400))
            victim = VICTIMS[number] if number < len(VICTIMS) else chance.choice(VICTIMS)
            print(f"{number + 1}: {victim}", flush=True)
            flow.kill(victim)
            flow.wait_for_those_beside()
            writer.partitions = flow.partitions
        flow.wait_for_more(200)
    finally:
        writer.close()
    written = flow.values(flow.source, TOPIC)
    assert min(map(len, written.values())) > 20
    for alias in flow.workers:
        wait_until(f"{alias} has all", lambda alias=alias: _last(flow, alias) == _last_values(written), PATIENCE)
    exact, least = (flow.values(flow.target, f"{alias}.{TOPIC}") for alias in ("exact", "least"))
    assert {at: _values(places) for at, places in exact.items()} == {
        at: _values(found) for at, found in written.items()
    }
    for partition, places in least.items():
        # No gap: what comes again is followed by the rest, and each record comes for the first time in its order.
        assert list(dict.fromkeys(_values(places))) == _values(written[partition])
    doubled = sum(map(len, least.values())) - sum(map(len, written.values()))
    print(f"{sum(map(len, written.values()))} records; at least once has {doubled} of them twice", flush=True)
    wait_until("the offsets of the group are exact", lambda: _is_followed(flow, written, exact), PATIENCE)
    _check_moves(flow, written, exact, tmp_path, chance)


def _is_followed(
    flow: Flow, written: dict[int, list[tuple[int, bytes]]], exact: dict[int, list[tuple[int, bytes]]]
) -> bool:
    there = committed(flow.target.bootstrap, FOLLOWED, f"exact.{TOPIC}", flow.partitions)
    return all(
        there[at] >= 0 and _from(exact[at], there[at]) == _from(written[at], offset)
        for at, offset in flow.followed.items()
    )


def _check_moves(
    flow: Flow,
    written: dict[int, list[tuple[int, bytes]]],
    exact: dict[int, list[tuple[int, bytes]]],
    folder: Path,
    chance: random.Random,
) -> None:
    """A group fails over, and back from further on, and each time goes on with the record that is next."""
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters = exact, to-exact\nexact.bootstrap.servers = {flow.source.bootstrap}\n"
        f"to-exact.bootstrap.servers = {flow.target.bootstrap}\nexact->to-exact.enabled = true\ntopics = {TOPIC}\n"
    )
    remote = f"exact.{TOPIC}"
    for turn in range(MOVES):
        # Each turn further on, with the offset of some record.
        here = {at: chance.choice(_piece(places, turn))[0] for at, places in written.items()}
        _commit(flow.source.bootstrap, TOPIC, here)
        _sluice("failover", str(file), GROUP)
        there = committed(flow.target.bootstrap, GROUP, remote, flow.partitions)
        for at, offset in here.items():
            assert _from(exact[at], there[at]) == _from(written[at], offset)
        on = {at: chance.choice(_piece(places, turn, part=1))[0] for at, places in exact.items()}
        _commit(flow.target.bootstrap, remote, on)
        _sluice("failback", str(file), GROUP)
        back = committed(flow.source.bootstrap, GROUP, TOPIC, flow.partitions)
        for at, offset in on.items():
            assert _from(written[at], back[at]) == _from(exact[at], offset)


def _sluice(*words: str) -> None:
    done = CliRunner().invoke(mirror, list(words))
    assert done.exit_code == 0, done.output


def _commit(bootstrap: str, topic: str, places: dict[int, int], group: str = GROUP) -> None:
    admin = admin_client(bootstrap)

    def is_done() -> bool:
        given = [TopicPartition(topic, partition, offset) for partition, offset in places.items()]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, given)])
        return all(each.error is None for each in asked[group].result(30).topic_partitions)

    wait_until("the offsets are committed", is_done)


def _piece(places: list[tuple[int, bytes]], turn: int, part: int = 0) -> list[tuple[int, bytes]]:
    """A piece of the newest records; pieces of later turns, and later parts of one turn, are further on."""
    # Each transaction begins another run, of three records where there are seven partitions, and the newest five
    # hundred runs of a partition are kept whole.
    newest = places[-NEWEST:]
    size = len(newest) // (2 * MOVES)
    first = (2 * turn + part) * size
    return newest[first : first + size]


def _from(places: list[tuple[int, bytes]], offset: int) -> list[bytes]:
    return [value for at, value in places if at >= offset]


def _values(places: list[tuple[int, bytes]]) -> list[bytes]:
    return [value for _, value in places]


def _last_values(records: dict[int, list[tuple[int, bytes]]]) -> list[bytes]:
    return [places[-1][1] if places else b"" for places in records.values()]


def _last(flow: Flow, alias: str) -> list[bytes]:
    return _last_values(flow.values(flow.target, f"{alias}.{TOPIC}"))
