"""The RabbitMQ connectors keep the contract. The server takes seconds to start, so that only `make test-all` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connectors.rabbitmq import RabbitMQSinkConnector, RabbitMQSourceConnector
from equipment.servers.rabbitmq import RabbitServer, queue_name

pytestmark = pytest.mark.thorough

MESSAGES = [b"message %d" % number for number in range(12)]
ROUNDS = 60
"""How often the messages are in the queue: what a test has read is not there for the next task."""


class _QueueTests(SourceConnectorTests):
    """A queue forgets what is acknowledged: a producer that starts over stands for the beginning."""

    record_count = len(MESSAGES)
    resumes_exactly = False

    @pytest.fixture(params=["classic", "quorum"])
    def props(self, rabbitmq: RabbitServer, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
        queue = rabbitmq.declare(queue_name(), kind=request.param)
        rabbitmq.publish(queue, MESSAGES * ROUNDS)
        yield {**rabbitmq.props, "rabbitmq.queue": queue, "kafka.topic": "messages", "rabbitmq.prefetch.count": "50"}
        rabbitmq.delete(queue)


class TestRabbitMQSource(_QueueTests):
    """The body is the value."""

    connector_class = RabbitMQSourceConnector

    def identity(self, record: SourceRecord) -> object:
        """The body: the offset counts deliveries."""
        return record.value


class TestRabbitMQMessageSource(_QueueTests):
    """The value is a struct."""

    connector_class = RabbitMQSourceConnector

    @pytest.fixture
    def props(self, props: Mapping[str, str]) -> Mapping[str, str]:
        return {**props, "rabbitmq.record.format": "message"}

    def identity(self, record: SourceRecord) -> object:
        """The body: the offset counts deliveries."""
        return record.value["body"]


class TestRabbitMQSink(SinkConnectorTests):
    """Texts to a queue."""

    connector_class = RabbitMQSinkConnector

    @pytest.fixture
    def queue(self, rabbitmq: RabbitServer) -> Iterator[str]:
        queue = rabbitmq.declare(queue_name())
        yield queue
        rabbitmq.delete(queue)

    @pytest.fixture
    def props(self, rabbitmq: RabbitServer, queue: str) -> Mapping[str, str]:
        return {**rabbitmq.props, "rabbitmq.exchange": "", "rabbitmq.routing.key": queue}

    @pytest.fixture
    def written(self, rabbitmq: RabbitServer, queue: str) -> Callable[[], Iterable[Any]]:
        found: list[str] = []

        def texts() -> list[str]:
            found.extend(body.decode() for _, _, body in rabbitmq.take(queue))
            return found

        return texts
