"""Measures how fast the RabbitMQ connectors move messages, beside bare pika: ``python bench/rabbitmq.py [MESSAGES]``.

The ceilings are a consumer that acknowledges a thousand messages at a time, and a publisher that awaits the
confirmation of a thousand at a time, in this process. CPU seconds are those of the worker, with its start. The time of
the source is that from its first message on the topic to its last.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from standalone import Bench, show, show_title

_ROOT = Path(__file__).parent.parent
# The benchmark modules have the names of packages, and would be found first.
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

import pika
from own_broker import own_broker
from queue_rates import FEW, PAYLOAD, fill, sourced, timed

from equipment.servers.rabbitmq import RabbitServer, rabbitmq_server
from worker.embedded.broker.server import BrokerConfig

_WINDOW = 1000
_BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}


def main() -> None:
    """Measure and print."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(own_broker(BrokerConfig(folder=folder / "broker", port=0)))
        server = stack.enter_context(rabbitmq_server())
        bench = Bench(folder, broker.bootstrap_servers, messages)
        for queue, count in (("few", 0), ("bare", messages), ("queue", messages), ("target", 0)):
            server.declare(queue)
            server.publish(queue, [b"%d " % number + PAYLOAD for number in range(count)])
        source = {"connector.class": "RabbitMQSource", **server.props}
        show_title("queue to topic")
        bare = timed("pika: consumer", messages, lambda: _consumed(server, "bare", messages))
        show(bare, bare)
        props = {**source, "rabbitmq.queue": "queue", "kafka.topic": "b"}
        show(sourced(folder, broker.bootstrap_servers, "RabbitMQSource", props, "b", messages), bare)

        show_title("topic to queue")
        fill(broker.bootstrap_servers, "messages", messages)
        fill(broker.bootstrap_servers, "few-messages", FEW)
        bare = timed("pika: publisher", messages, lambda: _published(server, "bare", messages))
        show(bare, bare)
        sink = {"connector.class": "RabbitMQSink", "rabbitmq.exchange": "", **server.props}
        few = {**sink, "topics": "few-messages", "rabbitmq.routing.key": "few"}
        start = bench.sluice("RabbitMQSink, few", few, _BYTES, FEW)
        show(start, bare)
        many = {**sink, "topics": "messages", "rabbitmq.routing.key": "target"}
        show(bench.sluice("RabbitMQSink", many, _BYTES), bare, start)
        assert server.waiting("target") == messages


def _consumed(server: RabbitServer, queue: str, messages: int) -> None:
    """Consume with manual acknowledgements."""
    with server.connect() as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=5 * _WINDOW)
        for count, (method, _, _) in enumerate(channel.consume(queue), 1):
            if count % _WINDOW == 0 or count == messages:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if count == messages:
                return


def _published(server: RabbitServer, queue: str, messages: int) -> None:
    """Publish with a confirmation awaited for each thousand."""
    done = 0
    properties = pika.BasicProperties(delivery_mode=2)

    def opened(connection: Any) -> None:
        connection.channel(on_open_callback=ready)

    def ready(channel: Any) -> None:
        channel.confirm_delivery(lambda frame: confirmed(channel, frame), callback=lambda _: more(channel))

    def more(channel: Any) -> None:
        for number in range(done, min(done + _WINDOW, messages)):
            channel.basic_publish("", queue, b"%d " % number + PAYLOAD, properties)

    def confirmed(channel: Any, frame: Any) -> None:
        nonlocal done
        if frame.method.delivery_tag == min(done + _WINDOW, messages):
            done = frame.method.delivery_tag
            if done == messages:
                channel.connection.close()
            else:
                more(channel)

    parameters = pika.ConnectionParameters("127.0.0.1", server.port)
    connection = pika.SelectConnection(
        parameters, on_open_callback=opened, on_close_callback=lambda made, _: made.ioloop.stop()
    )
    connection.ioloop.start()


if __name__ == "__main__":
    main()
