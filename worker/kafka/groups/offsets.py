"""The offsets of a consumer group: read, altered and reset, while the group has no members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeAlias, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from connect.errors import ConnectError, NotFoundError
from connect.kafka.auth.rights import ADMIN, Right, explained, on_group, on_topic
from connect.kafka.settings.kind import ClientProperties
from worker.kafka.groups.coordinator import once_coordinated

__all__ = ["ConsumerGroup", "GroupOffsets"]

GroupOffsets: TypeAlias = Mapping[tuple[str, int], int]
"""Topics and partitions, each with the next offset to consume."""

T = TypeVar("T")

_TIMEOUT: Final = 30.0
_UNKNOWN: Final = frozenset(
    (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
)
_IN_USE: Final = frozenset(
    (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.GROUP_SUBSCRIBED_TO_TOPIC)
)
_MOVING: Final = frozenset(
    (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
)


class ConsumerGroup:
    """One group on the broker. Every method raises :class:`~connect.errors.ConnectError` when the broker refuses."""

    def __init__(self, admin: AdminClient, client: ClientProperties, group: str) -> None:
        """``client`` is what ``admin`` was made from."""
        self._admin = admin
        self._client = client
        self._group = group

    def offsets(self) -> dict[tuple[str, int], int]:
        """The offsets the group has committed."""
        # Imported here: it takes 20 MB.
        from worker.kafka.groups.coordinator_requests import read_offsets  # noqa: PLC0415

        return dict(sorted(read_offsets(self._client, self._group, _TIMEOUT).items()))

    def alter(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Set offsets; ``None`` forgets one.

        Crash point: a kill between the two requests leaves those forgotten that were to be, and the others as they
        were; each of the two is done as a whole or not at all.
        """
        if forgotten := [place for place, offset in offsets.items() if offset is None]:
            self._forget(forgotten)
        if wanted := {place: offset for place, offset in offsets.items() if offset is not None}:
            self._set(wanted)

    def delete(self) -> None:
        """Forget every offset, by deleting the group."""
        try:
            _answered(lambda: self._admin.delete_consumer_groups([self._group], request_timeout=_TIMEOUT)[self._group])
        except KafkaException as error:
            if _code(error) != KafkaError.GROUP_ID_NOT_FOUND:
                raise self._refused("reset", error, [on_group(self._group, "Delete")]) from error

    def _forget(self, places: Sequence[tuple[str, int]]) -> None:
        # Imported here: it takes 20 MB, and librdkafka does not have this request.
        from worker.kafka.groups.coordinator_requests import GroupInUseError, forget_offsets  # noqa: PLC0415

        try:
            forget_offsets(self._client, self._group, places, _TIMEOUT)
        except GroupInUseError as error:
            raise self._in_use("alter") from error

    def _set(self, offsets: GroupOffsets) -> None:
        places = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(self._group, places)]
        try:
            answer = _answered(
                lambda: self._admin.alter_consumer_group_offsets(asked, request_timeout=_TIMEOUT)[self._group]
            )
        except KafkaException as error:
            raise self._refused("alter", error, [on_group(self._group, "Read")]) from error
        for item in answer.topic_partitions:
            if item.error is not None:
                rights = (on_group(self._group, "Read"), on_topic(item.topic, "Read"))
                raise self._refused("alter", KafkaException(item.error), rights, item)

    def _refused(
        self, what: str, error: KafkaException, rights: Sequence[Right], place: TopicPartition | None = None
    ) -> ConnectError:
        code = _code(error)
        if code in _UNKNOWN and place is not None:
            return NotFoundError(
                f"There is no partition {place.partition} of a topic {place.topic} to set offsets for."
            )
        if code in _IN_USE:
            return self._in_use(what)
        told = explained(_error(error), ADMIN, *rights)
        return ConnectError(f"Failed to {what} offsets of consumer group {self._group}: {told}")

    def _in_use(self, what: str) -> ConnectError:
        return ConnectError(
            f"Failed to {what} offsets of consumer group {self._group} either because tasks of the connector "
            "haven't stopped completely yet or because others consume with this group. If the connector is in a "
            "stopped state, this operation can be safely retried."
        )


def _answered(ask: Callable[[], Future[T]]) -> T:
    """The answer, once the group has a coordinator."""
    return once_coordinated(lambda: ask().result(), _is_moving, _TIMEOUT)


def _is_moving(error: Exception) -> bool:
    return isinstance(error, KafkaException) and _code(error) in _MOVING


def _error(error: KafkaException) -> Any:
    return error.args[0]


def _code(error: KafkaException) -> int:
    code: int = _error(error).code()
    return code
