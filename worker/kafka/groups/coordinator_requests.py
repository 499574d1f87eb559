"""Requests to the coordinator of a consumer group that are made by kafka-python, because librdkafka cannot.

librdkafka has no request to forget some of the offsets (KIP-496). It has one to read them, but its admin client ends
the process with a segmentation fault when the coordinator is moving or not up yet: ``rd_kafka_handle_OffsetFetch``
looks for it anew in the group of the client, and an admin client has none (librdkafka 2.x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from connect.errors import ConnectError
from connect.kafka.auth.rights import ADMIN, Right, on_group, on_topics, remedy
from connect.kafka.settings.kind import ClientProperties
from worker.kafka.clients.kafka_python import kafka_python_settings, quieten
from worker.kafka.groups.coordinator import once_coordinated

__all__ = ["GroupInUseError", "forget_offsets", "read_offsets"]

T = TypeVar("T")

_IN_USE: Final = (errors.NonEmptyGroupError, errors.GroupSubscribedToTopicError)
_MOVING: Final = (
    errors.CoordinatorLoadInProgressError,
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
)
# A partition without an offset, or that is gone, has nothing to forget.
_FORGOTTEN: Final = (errors.NoError, errors.UnknownTopicOrPartitionError)


class GroupInUseError(ConnectError):
    """The group has members that consume these topics."""


def read_offsets(client: ClientProperties, group: str, timeout: float) -> dict[tuple[str, int], int]:
    """Every offset that a group has committed, by topic and partition; empty for an unknown group.

    Raises :class:`~connect.errors.ConnectError` if the broker refuses within ``timeout`` seconds.
    """
    try:
        with _admin(client) as admin:
            answer = _answered(lambda: admin.list_group_offsets({group: None})[group], timeout)
    except errors.GroupIdNotFoundError:
        return {}
    except errors.KafkaError as error:
        raise ConnectError(
            f"Failed to read offsets of consumer group {group}: {_explained(error, [on_group(group, 'Describe')])}"
        ) from error
    return {tuple(place): committed.offset for place, committed in answer.items() if committed.offset >= 0}


def forget_offsets(client: ClientProperties, group: str, places: Sequence[tuple[str, int]], timeout: float) -> None:
    """Make a group forget its offsets of these topics and partitions.

    A group without members forgets all of it or nothing. Raises :class:`GroupInUseError`, or a ``ConnectError`` for
    whatever else the broker refuses within ``timeout`` seconds.
    """
    partitions = [TopicPartition(*place) for place in places]
    try:
        with _admin(client) as admin:
            for answer in _answered(lambda: admin.delete_group_offsets(group, partitions), timeout).values():
                if answer not in _FORGOTTEN:
                    raise answer
    except errors.GroupIdNotFoundError:
        return
    except _IN_USE as error:
        raise GroupInUseError(f"Group {group} is in use") from error
    except errors.KafkaError as error:
        topics = sorted({topic for topic, _ in places})
        rights = [on_group(group, "Delete"), *on_topics(topics, "Read")]
        raise ConnectError(f"Failed to alter offsets of consumer group {group}: {_explained(error, rights)}") from error


def _explained(error: errors.KafkaError, rights: Sequence[Right]) -> str:
    text = str(error).rstrip(".")
    known = remedy(getattr(error, "errno", None) or 0, ADMIN, rights)
    return f"{text}. {known}" if known else text


@contextmanager
def _admin(client: ClientProperties) -> Iterator[KafkaAdminClient]:
    quieten()
    admin = KafkaAdminClient(**kafka_python_settings(client))
    try:
        yield admin
    finally:
        admin.close()


def _answered(ask: Callable[[], T], timeout: float) -> T:
    """The answer, once the group has a coordinator."""
    return once_coordinated(ask, lambda error: isinstance(error, _MOVING), timeout)
