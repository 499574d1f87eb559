"""The ceiling set by the raw client: confluent-kafka alone doing a connector's work. Run by ``bench/standalone.py``."""

from __future__ import annotations

import json
import resource
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

_BATCH = 500


def produce(bootstrap: str, topic: str, file: Path, *, keyed: bool = False) -> int:
    """Produce every line of a file to a topic; its key, if any, is the line too."""
    with file.open("rb") as stream:
        return produce_all(bootstrap, topic, (line[:-1] for line in stream), keyed=keyed)


def produce_all(bootstrap: str, topic: str, values: Iterable[bytes], *, keyed: bool = False) -> int:
    """Produce values to a topic, and wait until each is acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.kbytes": 32 * 1024,
            "partitioner": "murmur2_random",
        }
    )
    acknowledged = 0

    def delivered(error: KafkaError | None, _message: Any) -> None:
        nonlocal acknowledged
        if error is not None:
            raise RuntimeError(error)
        acknowledged += 1

    for value in values:
        while True:
            try:
                producer.produce(topic, value, value if keyed else None, -1, delivered)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    producer.flush()
    return acknowledged


def consume(bootstrap: str, topic: str, file: Path) -> int:
    """Consume every value of a topic into a file, one per line."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
            "queued.min.messages": 20000,
        }
    )
    partitions = len(consumer.list_topics(topic).topics[topic].partitions)
    consumer.subscribe([topic])
    count = ends = 0
    with file.open("wb") as stream:
        while ends < partitions:
            messages = consumer.consume(_BATCH, timeout=1.0)
            values = [message.value() for message in messages if message.error() is None]
            ends += len(messages) - len(values)
            if values:
                stream.write(b"\n".join(values) + b"\n")
                count += len(values)
    consumer.close()
    return count


def main() -> None:
    """Run ``raw_client.py produce|consume BOOTSTRAP TOPIC FILE [keyed]``: print records and seconds as JSON."""
    verb, bootstrap, topic, file, *keyed = sys.argv[1:]
    started, start_cpu = time.perf_counter(), _cpu()
    place = Path(file)
    records = (
        produce(bootstrap, topic, place, keyed=bool(keyed)) if verb == "produce" else consume(bootstrap, topic, place)
    )
    seconds = time.perf_counter() - started
    print(json.dumps({"records": records, "seconds": seconds, "cpu": _cpu(), "start_cpu": start_cpu}))


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
