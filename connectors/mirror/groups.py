"""Lists the consumer groups of a cluster, with their offsets and states, and commits offsets for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from typing import Any, Final, TypeVar

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from connect.errors import ConnectError, RetriableError
from connectors.mirror.checkpoints import GroupOffset
from connectors.mirror.patience import Patience, refusal

__all__ = ["GroupState", "Groups"]

T = TypeVar("T")

_LIST: Final = "list its groups"
_AT_ONCE: Final = 100
"""How many groups are asked for at a time; a request has one group."""
_LONGER_SECONDS: Final = 60.0
"""Seconds by which the client would wait longer than the caller does."""


class GroupState(Enum):
    """Whether a group exists and has members."""

    ABSENT = "absent"
    EMPTY = "empty"
    ACTIVE = "active"
    """It has members; nobody else may commit its offsets."""


class Groups:
    """Reads and commits offsets of a cluster's groups, with clients that ``connect`` creates. For one thread.

    Each method raises :class:`~connectors.mirror.patience.StoppedError` when the caller is stopped.
    """

    def __init__(self, connect: Callable[[], AdminClient], patience: Patience) -> None:
        self._connect = connect
        self._client: AdminClient | None = None
        self._patience = patience
        self._request_timeout = patience.seconds + _LONGER_SECONDS

    def names(self) -> list[str]:
        """Return the names of all consumer groups, classic and new, in order.

        Raise an error rather than a part of them: a coordinator that is still loading its groups after a restart, or
        that cannot be reached, leaves its groups out of the list.
        """
        listed = self._patience.answer(_LIST, self._admin.list_consumer_groups(request_timeout=self._request_timeout))
        if listed.errors:
            raise _incomplete(refusal(self._patience.cluster, _LIST, listed.errors[0].args[0]))
        return sorted(group.group_id for group in listed.valid)

    def committed(self, groups: Iterable[str]) -> dict[str, Sequence[GroupOffset] | ConnectError]:
        """Return the committed offsets of each group, or the error why they cannot be read."""
        # librdkafka aborts the process when offsets are requested from a broker that does not coordinate the group,
        # such as one that has just started (librdkafka issue 5040). Describing the group returns an error instead.
        states = self.states(groups)
        away = {group: found for group, found in states.items() if isinstance(found, RetriableError)}
        ready = [group for group in states if group not in away]
        committed = dict(self._each("list the offsets of groups", ready, self._ask_committed, _offsets))
        return {group: away[group] if group in away else committed[group] for group in states}

    def states(self, groups: Iterable[str]) -> dict[str, GroupState | ConnectError]:
        """Return the state of each group, or the error why it is unknown."""
        return dict(self._each("describe groups", groups, self._ask_states, _state))

    def commit(self, group: str, offsets: Iterable[GroupOffset]) -> list[ConnectError]:
        """Commit offsets for a group without members; return the errors of single partitions."""
        places = [TopicPartition(each.topic, each.partition, each.offset, each.metadata) for each in offsets]
        what = f"commit offsets of the group {group}"
        asked = self._admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, places)], request_timeout=self._request_timeout
        )
        done = self._answers(what, asked)[group]
        if isinstance(done, ConnectError):
            raise done
        return [
            refusal(self._patience.cluster, f"{what} in {place.topic}-{place.partition}", place.error)
            for place in done.topic_partitions or ()
            if place.error is not None
        ]

    def _each(
        self,
        what: str,
        groups: Iterable[str],
        ask: Callable[[Sequence[str]], Mapping[str, Future[Any]]],
        read: Callable[[Any], T],
    ) -> Iterator[tuple[str, T | ConnectError]]:
        names = list(groups)
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            for group, found in self._answers(what, ask(some)).items():
                yield group, found if isinstance(found, ConnectError) else read(found)

    def _answers(self, what: str, futures: Mapping[str, Future[Any]]) -> dict[str, Any | ConnectError]:
        """Return the answers of the coordinators of groups.

        librdkafka looks for an unreachable coordinator even when a request has timed out, and aborts the process when
        it finds it (librdkafka pull request 5397). So requests are given up before they time out, together with their
        client.
        """
        try:
            return self._patience.answers(what, futures)
        finally:
            if not all(future.done() for future in futures.values()):
                self._client = None

    @property
    def _admin(self) -> AdminClient:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _ask_committed(self, groups: Sequence[str]) -> Mapping[str, Future[Any]]:
        return {
            group: self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._request_timeout
            )[group]
            for group in groups
        }

    def _ask_states(self, groups: Sequence[str]) -> Mapping[str, Future[Any]]:
        asked: Mapping[str, Future[Any]] = self._admin.describe_consumer_groups(
            list(groups), request_timeout=self._request_timeout
        )
        return asked


def _incomplete(error: ConnectError) -> ConnectError:
    if not isinstance(error, RetriableError):
        return error
    return RetriableError(
        f"{error}. The list is incomplete while a broker starts or cannot be reached. Try again, and check that all "
        "brokers of the cluster run if this goes on"
    )


def _offsets(found: ConsumerGroupTopicPartitions) -> Sequence[GroupOffset]:
    return [
        GroupOffset(place.topic, place.partition, place.offset, place.metadata or "")
        for place in found.topic_partitions or ()
        if place.offset >= 0 and place.error is None
    ]


def _state(found: Any) -> GroupState:
    match found.state:
        case ConsumerGroupState.DEAD:
            return GroupState.ABSENT
        case ConsumerGroupState.EMPTY:
            return GroupState.EMPTY
    return GroupState.ACTIVE
