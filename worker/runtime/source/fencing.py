"""Fencing by transactional ids, after which a former producer can commit nothing (KIP-618, invariant I6).

A process that is slow to start may begin an epoch of its transactional id after the leader has fenced the tasks of its
configuration, so that nothing fences it any more. So it asks the worker whether it still owns its task before it sends
anything. Crash point: killed before the answer, it has sent nothing, and leaves an epoch that the next process of the
task supersedes.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from confluent_kafka import KafkaException

from connect.errors import ConnectError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.kafka.auth.rights import PRODUCER, explained, on_transactional_id
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.messages import messages
from worker.runtime.control import Control

__all__ = ["confirm_ownership", "fence"]

_TIMEOUT_SECONDS: Final = 60.0
_AT_ONCE: Final = 8


def fence(producers: Iterable[tuple[str, ClientProperties]]) -> None:
    """Begin a new epoch of the transactional id of each of these producers, given with the names of their owners.

    librdkafka can fence only by a producer that takes over the id. Several at a time, since each waits for the broker.
    Raises :class:`~connect.errors.ConnectError` if one cannot be fenced.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_fence, producers))


def _fence(named: tuple[str, ClientProperties]) -> None:
    owner, properties = named
    try:
        librdkafka.producer(properties).init_transactions(_TIMEOUT_SECONDS)
    except KafkaException as error:
        right = on_transactional_id(str(properties.properties["transactional.id"]), "Write")
        reason = explained(error.args[0], PRODUCER, right)
        raise ConnectError(f"The former producer of {owner} cannot be fenced: {reason}.") from error


def confirm_ownership(control: Control) -> None:
    """Wait until the worker confirms that this process owns its task.

    Raises :class:`StopRequested` if the worker stops the task instead.
    """
    request = control.request()
    control.send(messages.ConfirmOwnership(request))
    while control.reply(request) is None:
        if control.stopping:
            raise StopRequested
        control.wait_for_command()
