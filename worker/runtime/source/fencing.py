"""Fencing by transactional ids: whoever had one before can commit nothing any more (KIP-618, invariant I6)."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import KafkaException

from connect.chain.tolerance import StopRequested
from connect.errors import ConnectError
from connect.kafka.auth.rights import PRODUCER, explained, on_transactional_id
from connect.kafka.clients import librdkafka
from connect.kafka.settings.client import ClientProperties
from worker.runtime.control import Control
from worker.supervisor.messages import messages

__all__ = ["confirm_ownership", "fence"]

_TIMEOUT: Final = 60.0
_AT_ONCE: Final = 8


def fence(producers: Iterable[tuple[str, ClientProperties]]) -> None:
    """Begin a new epoch for the transactional id of each of these producers, which have the names of their owners.

    librdkafka has no other means to fence than a producer that takes the id over. Some at a time, for each waits for
    the broker. Raises :class:`~connect.errors.ConnectError` if one cannot be fenced.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_fence, producers))


def _fence(named: tuple[str, ClientProperties]) -> None:
    owner, properties = named
    try:
        librdkafka.producer(properties).init_transactions(_TIMEOUT)
    except KafkaException as error:
        right = on_transactional_id(str(properties.properties["transactional.id"]), "Write")
        told = explained(error.args[0], PRODUCER, right)
        raise ConnectError(f"The former producer of {owner} cannot be fenced: {told}.") from error


def confirm_ownership(control: Control) -> None:
    """Return when the worker has confirmed it. One that does not stops this process: :class:`StopRequested`."""
    request = control.request()
    control.send(messages.ConfirmOwnership(request))
    while control.reply(request) is None:
        if control.stopping:
            raise StopRequested
        control.wait_for_command()
