"""Requests to the coordinator of a consumer group, made with kafka-python because librdkafka cannot make them.

librdkafka has no requests to delete some offsets (KIP-496) and to remove members (KIP-345). It has the others, but its
admin client crashes the process when the coordinator is away: while reading offsets, with a segmentation fault as soon
as the coordinator moves, because ``rd_kafka_handle_OffsetFetch`` looks it up again in the client's group, which an
admin client does not have (librdkafka issue 5040); with each of them, if it finds the coordinator after the request has
timed out (librdkafka pull request 5397).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from kafka import errors
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.structs import OffsetAndMetadata, TopicPartition

from connect.errors import ConnectError, NotFoundError
from connect.internals.kafka.auth.rights import ADMIN, CONSUMER, Right, on_group, on_topics, remedy
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.clients.kafka_python import kafka_python_settings, quieten

__all__ = ["delete_group", "forget_offsets", "has_members", "read_offsets", "remove_members", "set_offsets"]

T = TypeVar("T")

_IN_USE: Final = (errors.NonEmptyGroupError, errors.UnknownMemberIdError, errors.GroupSubscribedToTopicError)
_MOVING: Final = (
    errors.CoordinatorLoadInProgressError,
    errors.CoordinatorNotAvailableError,
    errors.NotCoordinatorError,
)
# A partition that has no offset or no longer exists has nothing to delete.
_FORGOTTEN: Final = (errors.NoError, errors.UnknownTopicOrPartitionError)
_GONE: Final = (errors.NoError, errors.UnknownMemberIdError)
_LOOK_AGAIN_SECONDS: Final = 0.2
_WITHOUT_MEMBERS: Final = ("Empty", "Dead")


def read_offsets(client: ClientProperties, group: str, timeout: float) -> dict[tuple[str, int], int]:
    """Return every offset that a group has committed, by topic and partition; empty for an unknown group.

    Raises :class:`~connect.errors.ConnectError` if the broker refuses or does not answer within ``timeout`` seconds.
    """
    try:
        with _refusals("read", group, [on_group(group, "Describe")]):
            answer = _answered(client, lambda admin: admin.list_group_offsets({group: None})[group], timeout)
    except _UnknownGroupError:
        return {}
    return {tuple(place): committed.offset for place, committed in answer.items() if committed.offset >= 0}


def set_offsets(client: ClientProperties, group: str, offsets: Mapping[tuple[str, int], int], timeout: float) -> None:
    """Set offsets of a group without members.

    Raises :class:`~connect.errors.NotFoundError` for a missing partition, and a ``ConnectError`` if the broker refuses
    or does not answer within ``timeout`` seconds.
    """
    wanted = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}

    def ask(admin: KafkaAdminClient) -> None:
        for place, answer in admin.alter_group_offsets(group, wanted).items():
            if answer is errors.UnknownTopicOrPartitionError:
                raise NotFoundError(
                    f"Offsets of partition {place.partition} of topic {place.topic} cannot be set: there is no such "
                    "partition."
                )
            if answer is not errors.NoError:
                raise answer

    with _refusals("alter", group, [on_group(group, "Read"), *_on_topics(offsets)]):
        _answered(client, ask, timeout)


def forget_offsets(client: ClientProperties, group: str, places: Sequence[tuple[str, int]], timeout: float) -> None:
    """Delete a group's offsets of these topics and partitions.

    For a group without members, deletes all of them or none. Raises :class:`~connect.errors.ConnectError` if the broker
    refuses or does not answer within ``timeout`` seconds.
    """
    partitions = [TopicPartition(*place) for place in places]

    def ask(admin: KafkaAdminClient) -> None:
        for answer in admin.delete_group_offsets(group, partitions).values():
            if answer not in _FORGOTTEN:
                raise answer

    with suppress(_UnknownGroupError), _refusals("alter", group, [on_group(group, "Delete"), *_on_topics(places)]):
        _answered(client, ask, timeout)


def delete_group(client: ClientProperties, group: str, timeout: float) -> None:
    """Delete a group and all its offsets, if it has no members; a missing group is no error.

    Raises :class:`~connect.errors.ConnectError` if the broker refuses or does not answer within ``timeout`` seconds.
    """

    def ask(admin: KafkaAdminClient) -> None:
        if (answer := admin.delete_groups([group])[group]) != "OK":
            raise getattr(errors, answer)

    with suppress(_UnknownGroupError), _refusals("reset", group, [on_group(group, "Delete")]):
        _answered(client, ask, timeout)


def remove_members(client: ClientProperties, group: str, members: Sequence[str], timeout: float) -> None:
    """Remove members from a group by their ids; one that is no member any more is no error.

    Raises :class:`~connect.errors.ConnectError` if the broker refuses or does not answer within ``timeout`` seconds.
    """
    removed = [MemberToRemove(member_id=member) for member in members]

    def ask(admin: KafkaAdminClient) -> None:
        for answer in admin.remove_group_members(group, removed).values():
            if answer not in _GONE:
                raise answer

    try:
        _answered(client, ask, timeout)
    except errors.KafkaError as error:
        text = str(error).rstrip(".")
        known = remedy(getattr(error, "errno", None) or 0, CONSUMER, [on_group(group, "Read")])
        reason = f"{text}. {known}" if known else text
        raise ConnectError(f"Failed to remove members of consumer group {group}: {reason}") from error


def has_members(client: ClientProperties, group: str, timeout: float) -> bool:
    """Return whether a group of any protocol has members.

    Raises :class:`~connect.errors.ConnectError` if the broker refuses or does not answer within ``timeout`` seconds.
    """
    # The description of a group would be read as that of a group of consumers.
    with _refusals("list", group, [on_group(group, "Describe")]):
        listed = _answered(client, lambda admin: admin.list_groups(), timeout)
    return any(each["group_id"] == group and each.get("group_state") not in _WITHOUT_MEMBERS for each in listed)


class _UnknownGroupError(Exception):
    """The group does not exist."""


@contextmanager
def _refusals(what: str, group: str, rights: Sequence[Right]) -> Iterator[None]:
    """Translate the broker's refusals into errors that say what was attempted and what to do."""
    try:
        yield
    except errors.GroupIdNotFoundError as error:
        raise _UnknownGroupError from error
    except _IN_USE as error:
        raise ConnectError(
            f"Failed to {what} offsets of consumer group {group} either because tasks of the connector haven't stopped "
            "completely yet or because others consume with this group. If the connector is in a stopped state, this "
            "operation can be safely retried."
        ) from error
    except errors.KafkaError as error:
        text = str(error).rstrip(".")
        known = remedy(getattr(error, "errno", None) or 0, ADMIN, rights)
        reason = f"{text}. {known}" if known else text
        raise ConnectError(f"Failed to {what} offsets of consumer group {group}: {reason}") from error


def _on_topics(places: Iterable[tuple[str, int]]) -> tuple[Right, ...]:
    return on_topics(sorted({topic for topic, _ in places}), "Read")


def _answered(client: ClientProperties, ask: Callable[[KafkaAdminClient], T], timeout: float) -> T:
    """Return the response once the group has a coordinator, which may take a moment in a new or restarted cluster."""
    deadline = time.monotonic() + timeout
    with _admin(client) as admin:
        while True:
            try:
                return ask(admin)
            except _MOVING:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK_AGAIN_SECONDS)


@contextmanager
def _admin(client: ClientProperties) -> Iterator[KafkaAdminClient]:
    quieten()
    admin = KafkaAdminClient(**kafka_python_settings(client))
    try:
        yield admin
    finally:
        admin.close()
