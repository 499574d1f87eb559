"""Fencing the producers of tasks that may still run somewhere (KIP-618), in a process of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import KafkaException

from connect.errors import ConnectError
from connect.kafka.auth.rights import PRODUCER, explained, on_transactional_id
from connect.kafka.clients import librdkafka
from worker.kafka.clients import roles
from worker.runtime.assembly import Assembly
from worker.security.redaction import Redaction
from worker.supervisor.messages import messages

__all__ = ["fence_producers"]

_TIMEOUT: Final = 60.0
_AT_ONCE: Final = 8


def fence_producers(inquiry: messages.FenceProducers, redaction: Redaction) -> messages.Fenced:
    """Begin a new epoch for the transactional id of each task: whoever had it before cannot commit any more.

    librdkafka has no other means to fence than a producer that takes the id over. Some at a time, for each waits for
    the broker. Raises :class:`~connect.errors.ConnectError` if one cannot be fenced.
    """
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)

    def fence(task: int) -> None:
        properties = roles.source_producer_properties(assembly.worker_props, assembly.props, task, exactly_once=True)
        try:
            librdkafka.producer(properties).init_transactions(_TIMEOUT)
        except KafkaException as error:
            right = on_transactional_id(str(properties.properties["transactional.id"]), "Write")
            told = explained(error.args[0], PRODUCER, right)
            raise ConnectError(f"The former producer of task {task} cannot be fenced: {told}.") from error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(fence, inquiry.tasks))
    return messages.Fenced()
