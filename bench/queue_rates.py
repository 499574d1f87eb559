"""What bench/rabbitmq.py and bench/mqtt.py share: a topic of texts, and how long a client or a source takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from standalone import CpuMeter, Measured

from equipment.brokers.topics import create_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

__all__ = ["FEW", "PAYLOAD", "fill", "sourced", "timed"]

FEW = 100
PAYLOAD = b"x" * 180
_PATIENCE_SECONDS = 600


def fill(bootstrap: str, topic: str, messages: int) -> None:
    """Put texts of some 190 bytes on a topic."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(messages):
        producer.produce(topic, b"%d " % number + PAYLOAD)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()


def timed(name: str, messages: int, run: Callable[[], None]) -> Measured:
    """Return the time that a run takes, and the CPU of this process."""
    started, cpu_started = time.perf_counter(), time.process_time()
    run()
    return Measured(name, messages, time.perf_counter() - started, time.process_time() - cpu_started)


def sourced(folder: Path, bootstrap: str, name: str, props: Mapping[str, str], topic: str, messages: int) -> Measured:
    """Return the time from the first message of a source on its topic to the last, and the CPU of all of the worker."""
    create_topic(bootstrap, topic)
    worker = StandaloneWorker(folder / name, bootstrap, **{"value.converter": "ByteArrayConverter"})
    worker.connector("bench", **props)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})

    def reached(least: int) -> bool:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]) >= least

    worker.start()
    meter = CpuMeter()
    meter.watch(worker.pid)
    try:
        wait_until("the first is there", lambda: reached(1), _PATIENCE_SECONDS)
        started = time.perf_counter()
        wait_until("all are there", lambda: reached(messages), _PATIENCE_SECONDS)
        seconds = time.perf_counter() - started
    finally:
        cpu = meter.stop()
        worker.close()
        consumer.close()
    return Measured(name, messages, seconds, cpu)
