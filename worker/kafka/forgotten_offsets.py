"""Forgetting some offsets of a consumer group, which is one request (KIP-496) that librdkafka does not have."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from kafka import errors
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from connect.errors import ConnectError
from worker.kafka.client_kind import ClientProperties
from worker.kafka.python_client import python_client_settings, quieten

__all__ = ["GroupInUseError", "forget_offsets"]

_LOOK_AGAIN: Final = 0.2
_IN_USE: Final = (errors.NonEmptyGroupError, errors.GroupSubscribedToTopicError)
_MOVING: Final = (
    errors.CoordinatorLoadInProgressError,
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
)
# Who has no offset, or no partition by now, has nothing to forget.
_FORGOTTEN: Final = (errors.NoError, errors.UnknownTopicOrPartitionError)


class GroupInUseError(ConnectError):
    """The group has members that consume these topics."""


def forget_offsets(client: ClientProperties, group: str, places: Sequence[tuple[str, int]], timeout: float) -> None:
    """Have a group forget its offsets of these topics and partitions.

    A group without members forgets all of it or nothing. Raises :class:`GroupInUseError`, or a ``ConnectError`` for
    whatever else the broker refuses within ``timeout`` seconds.
    """
    quieten()
    deadline = time.monotonic() + timeout
    try:
        admin = KafkaAdminClient(**python_client_settings(client))
        try:
            while not _done(admin, group, places, deadline):
                time.sleep(_LOOK_AGAIN)
        finally:
            admin.close()
    except errors.GroupIdNotFoundError:
        return
    except _IN_USE as error:
        raise GroupInUseError(f"Group {group} is in use") from error
    except errors.KafkaError as error:
        raise ConnectError(f"Failed to alter offsets of consumer group {group}: {error}") from error


def _done(admin: KafkaAdminClient, group: str, places: Sequence[tuple[str, int]], deadline: float) -> bool:
    """Ask once; not done while the group is without a broker that sees to it."""
    try:
        answers = admin.delete_group_offsets(group, [TopicPartition(*place) for place in places])
    except _MOVING:
        if time.monotonic() >= deadline:
            raise
        return False
    for answer in answers.values():
        if answer not in _FORGOTTEN:
            raise answer
    return True
