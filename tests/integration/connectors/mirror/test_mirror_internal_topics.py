"""The internal topics of a mirror, read while others write on."""

from __future__ import annotations

from itertools import count
from threading import Event, Thread

from confluent_kafka import Consumer, Producer

from connectors.mirror.internal_topics import READING, InternalTopics
from connectors.mirror.patience import Patience
from equipment.brokers.topics import create_topic, produce


def test_a_topic_is_read_to_the_end_that_it_had_though_it_never_stops_growing(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"%d" % number for number in range(100)])
    producer, written, done = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}), Event(), Event()

    def write() -> None:
        for number in count(100):
            producer.produce(topic, b"%d" % number)
            producer.flush(30)
            written.set()
            if done.wait(0.005):
                return

    writer = Thread(target=write)
    writer.start()
    topics = InternalTopics(
        Consumer({"bootstrap.servers": bootstrap, "group.id": topic, **READING}),
        (topic,),
        Patience("A", 60.0, lambda _: True),
    )
    try:
        assert written.wait(30)
        found = [int(message.value() or b"") for message in topics.to_end()]
        assert found[:100] == list(range(100))
        # It was not the end of the writing that let it end.
        assert writer.is_alive()
        assert found == list(range(len(found)))
    finally:
        done.set()
        writer.join()
        topics.close()
