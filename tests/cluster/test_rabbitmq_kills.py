"""RabbitMQ to Kafka and back, while workers and the server are killed: nothing is lost.

``make rabbitmq-kills KILLS=20`` makes as many kills in each direction; the seed is printed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pika
import pytest

from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.servers.rabbitmq import RabbitServer, queue_name
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.thorough,
    pytest.mark.timeout(3600),
]

KILLS = int(os.environ.get("SLUICE_RABBITMQ_KILLS", "2"))
SEED = int(os.environ.get("SLUICE_RABBITMQ_SEED", str(random.randrange(1 << 32))))
PACE = 50
"""How many messages are published at a time."""
PREFETCH = 2000


class Flow:
    """Numbered messages, confirmed by the server, published in a thread for as long as wanted."""

    def __init__(self, server: RabbitServer, queue: str) -> None:
        self._server, self._queue = server, queue
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._server.publish(self._queue, [b"%d" % number for number in range(self.count, self.count + PACE)])
            except (OSError, pika.exceptions.AMQPError):
                # The server is down: its transaction did not take place, or was not told to; the same ones again.
                self._ended.wait(0.1)
                continue
            self.count += PACE
            self._ended.wait(0.05)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Publish while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()


def numbers(bootstrap: str, topic: str) -> list[int]:
    """The numbers on the topic."""
    return [int(message.value() or b"") for message in read_topic(bootstrap, topic)]


def strike(chance: random.Random, turn: int, worker: StandaloneWorker, server: RabbitServer) -> None:
    """Kill the worker or, every other time, the server, at some moment."""
    time.sleep(chance.uniform(0, 0.5))
    if turn % 2:
        with server.down():
            time.sleep(chance.uniform(0, 0.5))
    else:
        worker.kill()
        worker.start()


def test_a_source_loses_nothing(standalone: MakeWorker, own_rabbitmq: RabbitServer, bootstrap: str, topic: str) -> None:
    print(f"SLUICE_RABBITMQ_SEED={SEED}")
    chance = random.Random(SEED)
    create_topic(bootstrap, topic)
    server, queue = own_rabbitmq, own_rabbitmq.declare(queue_name())
    worker = standalone(value_converter="ByteArrayConverter")
    worker.connector(
        "queue",
        **{
            "connector.class": "RabbitMQSource",
            "rabbitmq.queue": queue,
            "kafka.topic": topic,
            "rabbitmq.prefetch.count": str(PREFETCH),
            "rabbitmq.network.recovery.interval.ms": "200",
            **server.props,
        },
    )
    worker.start()
    flow = Flow(server, queue)
    with flow.running():
        for turn in range(KILLS):
            before = len(numbers(bootstrap, topic))
            wait_until("messages flow", lambda before=before: len(numbers(bootstrap, topic)) > before, 180)
            strike(chance, turn, worker, server)
    sent = flow.count
    wait_until("all are there", lambda: len(set(numbers(bootstrap, topic))) >= sent, 180)
    assert worker.terminate() == 0
    found = numbers(bootstrap, topic)
    assert set(range(sent)) <= set(found)
    print(f"source, {KILLS} kills: {sent} sent, none lost, {len(found) - len(set(found))} doubled")
    # The producer doubles what it was not told of, a task what was under way.
    assert len(found) - len(set(found)) <= KILLS * (PREFETCH + PACE)
    assert server.waiting(queue) == 0


def test_a_sink_loses_nothing(standalone: MakeWorker, own_rabbitmq: RabbitServer, bootstrap: str, topic: str) -> None:
    print(f"SLUICE_RABBITMQ_SEED={SEED}")
    chance = random.Random(SEED)
    create_topic(bootstrap, topic)
    server, queue = own_rabbitmq, own_rabbitmq.declare(queue_name(), "quorum")
    worker = standalone()
    worker.connector(
        "out",
        **{
            "connector.class": "RabbitMQSink",
            "topics": topic,
            "rabbitmq.exchange": "",
            "rabbitmq.routing.key": queue,
            "rabbitmq.network.recovery.interval.ms": "200",
            "consumer.override.auto.offset.reset": "earliest",
            **server.props,
        },
    )
    worker.start()
    found: list[int] = []

    def arrived() -> int:
        with suppress(OSError, pika.exceptions.AMQPError):
            found.extend(int(body) for _, _, body in server.take(queue))
        return len(set(found))

    sent = 0
    for turn in range(KILLS):
        # Before they are produced: all of them may be there before this is counted.
        before = arrived()
        produce(bootstrap, topic, [b"%d" % number for number in range(sent, sent + 2000)])
        sent += 2000
        wait_until("messages flow", lambda before=before: arrived() > before, 180)
        strike(chance, turn, worker, server)
    wait_until("all are there", lambda: arrived() == sent, 180)
    assert worker.terminate() == 0
    arrived()
    assert set(found) == set(range(sent))
    print(f"sink, {KILLS} kills: {sent} sent, none lost, {len(found) - sent} doubled")
