"""Drivers of a Spark sink that are killed while they load a topic, and a reader that checks the table all the time."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import confluent_kafka
from confluent_kafka import Consumer

from equipment.brokers.topics import create_topic, ordered_producer
from equipment.scripts import spark_driver
from equipment.waiting import wait_until
from equipment.workers.processes import command_line, descendants
from equipment.workers.spark_drivers import Driver, running

__all__ = [
    "CONNECTOR",
    "PARTITIONS",
    "VICTIMS",
    "Loading",
    "Reader",
    "fill",
    "kill_soon",
    "seeded",
    "watched",
]

CONNECTOR: Final = "kills"
"""The name of the sink."""
PARTITIONS: Final = 2
VICTIMS: Final = ("driver", "jvm", "python worker")
"""The victims, in turn."""


def fill(bootstrap: str, topic: str, records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    """Create a topic and produce records, keys and values, to its partitions in turn."""
    create_topic(bootstrap, topic, PARTITIONS)
    producer = ordered_producer(bootstrap, **{"queue.buffering.max.messages": len(records) + 1})
    for number, (key, value) in enumerate(records):
        producer.produce(topic, value, key, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


@dataclass
class Loading:
    """A topic, and the configuration of the drivers that load it."""

    bootstrap: str
    topic: str
    props: Mapping[str, str]

    @contextmanager
    def driver(self, flush: int, crash: str | None = None, java: Mapping[str, str] | None = None) -> Iterator[Driver]:
        """A driver that has started its task, or has died in the attempt; without ``java`` it starts its own JVM.

        It loads this many records of each partition at a time.
        """
        order = {
            "name": CONNECTOR,
            "topic": self.topic,
            "bootstrap": self.bootstrap,
            "flush": flush,
            "props": dict(self.props),
        }
        with running(spark_driver.run, order, java, crash) as driver:
            # A crash point may be reached early, while the load of the previous driver is being finished.
            assert driver.has_started() or crash
            yield driver

    def drain(self, flush: int, java: Mapping[str, str] | None = None) -> None:
        """Load everything that is left."""
        with self.driver(flush, java=java) as driver:
            assert driver.wait() == 0

    def group_offset(self) -> int:
        """The sum of the group's committed offsets."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{CONNECTOR}"})
        try:
            partitions = [confluent_kafka.TopicPartition(self.topic, number) for number in range(PARTITIONS)]
            return sum(max(0, item.offset) for item in consumer.committed(partitions, timeout=30))
        finally:
            consumer.close()


class Reader(threading.Thread):
    """Checks repeatedly, and keeps the errors that it found."""

    def __init__(self, look: Callable[[], object], pause: float) -> None:
        super().__init__(daemon=True)
        self.looks = 0
        self.amiss: list[str] = []
        self._look = look
        self._pause = pause
        self._over = threading.Event()

    def run(self) -> None:
        pause = self._pause
        while not self._over.wait(pause):
            began = time.monotonic()
            try:
                self._look()
            except Exception as error:
                self.amiss.append(repr(error))
            self.looks += 1
            # After expensive checks, pause longer: the drivers need the machine.
            pause = max(self._pause, 19 * (time.monotonic() - began))

    def end(self) -> None:
        """Stop checking."""
        self._over.set()
        self.join()


@contextmanager
def watched(look: Callable[[], object], pause: float = 0.1) -> Iterator[Reader]:
    """A reader that checks during the block; the block fails if any ``look`` raised an error."""
    reader = Reader(look, pause)
    reader.start()
    try:
        yield reader
        # How often it checks depends on the machine, but it must check at least once.
        wait_until("the reader has looked", lambda: reader.looks)
    finally:
        reader.end()
    assert reader.amiss == []


def kill_soon(driver: Driver, kind: str, seconds: float) -> str:
    """Kill a victim of that kind after this many seconds, or the driver if there is none; return the kind that was
    killed."""
    time.sleep(seconds)
    pid = _victim(driver.pid, kind)
    if pid is None:
        return "driver"
    os.kill(pid, signal.SIGKILL)
    if kind == "jvm":
        assert driver.wait() != 0
    return kind


def _victim(driver: int, kind: str) -> int | None:
    """The process to kill: the driver itself, its JVM, or one of Spark's Python workers, if there is one."""
    if kind == "driver":
        return driver
    mark = "org.apache.spark.deploy.SparkSubmit" if kind == "jvm" else "spark.decoding.daemon"
    return max((pid for pid in descendants(driver) if mark in command_line(pid)), default=None)


def seeded() -> random.Random:
    """Random numbers whose seed is printed, and can be set in the environment to repeat them."""
    seed = int(os.environ.get("SLUICE_TEST_SEED", random.randrange(2**32)))
    print(f"SLUICE_TEST_SEED={seed}")
    return random.Random(seed)
