"""Waits for the answers of a cluster, for a limited time and only until the caller is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any, Final, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException

from connect.errors import ConnectError, RetriableError
from connect.internals.kafka.auth.rights import explained

__all__ = ["Patience", "StoppedError", "Wait", "may_pass", "refusal"]

K = TypeVar("K")
T = TypeVar("T")

Wait: TypeAlias = Callable[[float], bool]
"""Waits some seconds, and returns whether to continue; see ``wait`` of a task's context."""

_SLICE_SECONDS: Final = 0.05
# A wait of 0 seconds would not check whether the task is being stopped.
_LOOK_SECONDS: Final = 0.001
_PASSING: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_CONTROLLER,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)


class StoppedError(Exception):
    """The caller is being stopped or paused, so no answer is wanted any more."""


class Patience:
    """Waits for answers of one cluster, for at most ``seconds``, and only while ``wait`` returns true.

    ``cluster`` is the alias, for messages.
    """

    def __init__(self, cluster: str, seconds: float, wait: Wait) -> None:
        self.cluster = cluster
        self.seconds = seconds
        self._wait = wait

    def raise_if_stopped(self) -> None:
        """Raise :class:`StoppedError` if the caller is being stopped."""
        if not self._wait(_LOOK_SECONDS):
            raise StoppedError

    def answer(self, what: str, future: Future[T]) -> T:
        """Return one answer, or raise its error; see :meth:`answers`."""
        found = self.answers(what, {what: future})[what]
        if isinstance(found, ConnectError):
            raise found
        return found

    def answers(self, what: str, futures: Mapping[K, Future[T]]) -> dict[K, T | ConnectError]:
        """Return each answer or its error, which is a ``RetriableError`` if the cluster cannot be reached.

        ``what`` completes the sentence "the cluster was asked to ...". Raises :class:`StoppedError`.
        """
        deadline = time.monotonic() + self.seconds
        waiting: set[Future[T]] = set(futures.values())
        while waiting and time.monotonic() < deadline:
            waiting = wait_for(waiting, _SLICE_SECONDS).not_done
            if waiting:
                self.raise_if_stopped()
        return {key: self._outcome(what, future) for key, future in futures.items()}

    def _outcome(self, what: str, future: Future[Any]) -> Any:
        if not future.done():
            return RetriableError(f"The cluster {self.cluster} has not answered within {self.seconds:.0f} s: {what}")
        try:
            return future.result()
        except KafkaException as error:
            return refusal(self.cluster, what, error.args[0])


def refusal(cluster: str, what: str, error: KafkaError) -> ConnectError:
    """Return the error of a cluster that failed to do ``what``, retriable if it may succeed later."""
    text = f"The cluster {cluster} was asked to {what}: {explained(error, f'the mirror at {cluster}')}"
    return RetriableError(text) if may_pass(error) else ConnectError(text)


def may_pass(error: KafkaError) -> bool:
    """Return whether the same request may succeed later."""
    return error.retriable() or error.code() in _PASSING
