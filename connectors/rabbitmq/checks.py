"""What can be asked of RabbitMQ without taking a message, and what a validation finds out so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from connect.errors import ConnectError
from connectors.rabbitmq.config import ConnectionConfig
from connectors.rabbitmq.session import channel_failure, connection_failure

__all__ = ["PROBE", "exchange_problems", "probe_failure", "queue_problems"]

PROBE: Final[Mapping[str, Any]] = {"x-priority": "none"}
"""Arguments with which RabbitMQ accepts no consumer. It refuses them after it has looked for the queue and the right to
read it, so that both are known, and the kind of the queue, though no message is taken."""

_PRECONDITION_FAILED: Final = 406
_STREAM: Final = "rabbit_stream_queue"


def probe_failure(error: BaseException, queue: str, config: ConnectionConfig) -> ConnectError | None:
    """Return why a queue cannot be consumed, of which a consumer with :data:`PROBE` was refused; ``None`` if it can."""
    if getattr(error, "reply_code", None) != _PRECONDITION_FAILED:
        return channel_failure(error, f"the queue {queue}", config)
    if _STREAM in str(error):
        return ConnectError(
            f"The queue {queue} is a stream, which this connector does not consume: bind a quorum or classic queue to "
            "the exchange of the stream, and consume that."
        )
    return None


def queue_problems(config: ConnectionConfig, queues: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield a key and what is wrong, for each queue that cannot be consumed, or for the connection."""
    for queue, error in _refusals(config, {queue: _probe(queue) for queue in queues}):
        if queue is None:
            yield "rabbitmq.host", str(connection_failure(error, config))
        elif (problem := probe_failure(error, queue, config)) is not None:
            yield "rabbitmq.queue", str(problem)


def exchange_problems(config: ConnectionConfig, exchange: str, queues: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield a key and what is wrong with the exchange, with the queues of the topic map, or with the connection."""
    asked: dict[str, Callable[[Any], object]] = {}
    if exchange:
        asked[f"the exchange {exchange}"] = lambda channel: channel.exchange_declare(exchange, passive=True)
    asked |= {f"the queue {queue}": _declared(queue) for queue in queues}
    for what, error in _refusals(config, asked):
        if what is None:
            yield "rabbitmq.host", str(connection_failure(error, config))
        else:
            key = "rabbitmq.exchange" if what.startswith("the exchange") else "rabbitmq.topic.queue.map"
            yield key, str(channel_failure(error, what, config))


def _probe(queue: str) -> Callable[[Any], object]:
    return lambda channel: channel.basic_consume(queue, lambda *_: None, arguments=dict(PROBE))


def _declared(queue: str) -> Callable[[Any], object]:
    return lambda channel: channel.queue_declare(queue, passive=True)


def _refusals(
    config: ConnectionConfig, asked: Mapping[str, Callable[[Any], object]]
) -> Iterator[tuple[str | None, BaseException]]:
    """Yield which questions were refused, and how; ``None`` if the connection is not to be had, or lost."""
    import pika  # noqa: PLC0415 - the library is loaded only where it is used

    try:
        with pika.BlockingConnection(list(config.parameters())) as connection:
            for what, ask in asked.items():
                channel = connection.channel()
                try:
                    ask(channel)
                except pika.exceptions.ChannelClosedByBroker as error:
                    yield what, error
    except (pika.exceptions.AMQPError, ConnectError, OSError) as error:
        yield None, error
