"""Answers inquiries about offsets: whether a connector accepts them, and those of its consumer group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never, cast

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import ADMIN, explained, on_topics
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.clients.librdkafka import fail_without_login
from worker.config.connector import SinkConnectorConfig
from worker.errors import BadRequestError
from worker.kafka.clients import roles
from worker.kafka.groups.offsets import ConsumerGroup
from worker.kafka.topics.log_offsets import LogOffsets, Place
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.inquiries.source_offsets import answer_of_source_offsets
from worker.runtime.java.inquiries import accepts_source_offsets, alter_sink_offsets
from worker.runtime.sink.topic_choice import TopicChoice
from worker.security.redaction import Redaction

__all__ = ["OffsetInquiry", "PartitionOffsets", "ResetTo", "answer_of_offsets", "reset_offset"]

ResetTo: TypeAlias = Literal["earliest", "latest", "current", "offset", "shift", "timestamp"]
"""The kinds of reset. Date-times and durations have already been converted to timestamps."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """The offsets of one topic partition: its first, its end, and the group's.

    ``entry`` is where the group starts if it has committed nothing. ``at`` is the offset of the first record at or
    after the requested timestamp, if there is one.
    """

    begin: int
    end: int
    committed: int | None
    entry: int
    at: int | None = None


def reset_offset(to: ResetTo, number: int, offsets: PartitionOffsets) -> int:
    """Return the next offset to consume after the reset, which always exists or is the end.

    ``number`` is the offset for ``offset`` and the distance for ``shift``; the others ignore it.
    """
    position = offsets.entry if offsets.committed is None else offsets.committed
    match to:
        case "earliest":
            return offsets.begin
        case "latest":
            return offsets.end
        case "current":
            wanted = position
        case "offset":
            wanted = number
        case "shift":
            wanted = position + number
        case "timestamp":
            wanted = offsets.end if offsets.at is None else offsets.at
        case _:
            assert_never(to)
    return max(offsets.begin, min(wanted, offsets.end))


OffsetInquiry: TypeAlias = (
    messages.AlterSourceOffsets
    | messages.ReadDedicatedOffsets
    | messages.WriteSourceOffsets
    | messages.AlterSinkOffsets
    | messages.ReadSinkOffsets
    | messages.ResetSinkOffsets
    | messages.ReadSinkLag
)


def answer_of_offsets(inquiry: OffsetInquiry, redaction: Redaction) -> messages.Report:
    """Answer an inquiry about offsets."""
    match inquiry:
        case messages.ReadDedicatedOffsets() | messages.WriteSourceOffsets():
            return answer_of_source_offsets(inquiry, redaction)
        case messages.AlterSourceOffsets():
            return _alter_source(inquiry, redaction)
        case messages.AlterSinkOffsets():
            return _alter_sink(inquiry, redaction)
        case messages.ReadSinkOffsets():
            return _read_sink(inquiry, redaction)
        case messages.ResetSinkOffsets():
            return _reset_sink(inquiry, redaction)
        case messages.ReadSinkLag():
            return _sink_lag(inquiry, redaction)


def _alter_source(inquiry: messages.AlterSourceOffsets, redaction: Redaction) -> messages.SourceOffsetsAllowed:
    """Ask a source whether it accepts offsets, and find out who writes them."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    has_own, transactional = assembly.dedicated_offsets_topic is not None, assembly.supports_exactly_once
    if assembly.is_java:
        return messages.SourceOffsetsAllowed(accepts_source_offsets(assembly, inquiry.offsets), has_own, transactional)
    offsets = {json.dumps(partition): offset for partition, offset in inquiry.offsets}
    return messages.SourceOffsetsAllowed(_agreed(assembly, offsets), has_own, transactional)


def _alter_sink(inquiry: messages.AlterSinkOffsets, redaction: Redaction) -> messages.OffsetsAltered:
    """Set a group's offsets, or remove all of them, if the connector accepts that."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    if assembly.is_java:
        return messages.OffsetsAltered(alter_sink_offsets(assembly, inquiry.offsets))
    group = _group(assembly)
    offsets: dict[Place, int | None]
    if inquiry.offsets is None:
        offsets = dict.fromkeys(group.offsets())
    else:
        offsets = {(topic, partition): offset for topic, partition, offset in inquiry.offsets}
    managed = _agreed(assembly, _partitions(offsets))
    if inquiry.offsets is None:
        group.delete()
    else:
        group.alter(offsets)
    return messages.OffsetsAltered(managed)


def _read_sink(inquiry: messages.ReadSinkOffsets, redaction: Redaction) -> messages.SinkOffsets:
    """Return the offsets of a group."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    found = _group(assembly).offsets()
    return messages.SinkOffsets([(topic, partition, offset) for (topic, partition), offset in found.items()])


def _reset_sink(inquiry: messages.ResetSinkOffsets, redaction: Redaction) -> messages.SinkOffsetsReset:
    """Move a group if the connector accepts that; a dry run only computes the offsets, without asking the connector."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    admin = _admin(assembly)
    group, log = _group(assembly), LogOffsets(admin)
    places = _chosen(log.partitions(_topics(assembly, admin)), inquiry.topics)
    committed = group.offsets()
    at = log.at(places, inquiry.number) if inquiry.to == "timestamp" else {}
    found = _partition_offsets(assembly, log, places, committed)
    to = cast(ResetTo, inquiry.to)
    after = {
        place: reset_offset(
            to,
            inquiry.number,
            PartitionOffsets(offsets.begin, offsets.end, offsets.committed, offsets.entry, at.get(place)),
        )
        for place, offsets in found.items()
    }
    if after and not inquiry.dry_run and assembly.is_java:
        alter_sink_offsets(assembly, [(topic, partition, offset) for (topic, partition), offset in after.items()])
    elif after and not inquiry.dry_run:
        _agreed(assembly, _partitions(after))
        group.alter(after)
    return messages.SinkOffsetsReset(
        [(topic, partition, committed.get((topic, partition)), offset) for (topic, partition), offset in after.items()]
    )


def _sink_lag(inquiry: messages.ReadSinkLag, redaction: Redaction) -> messages.SinkLag:
    """Return the lag of a group, in all partitions that it consumes now."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    admin = _admin(assembly)
    log = LogOffsets(admin)
    places = log.partitions(_topics(assembly, admin))
    found = _partition_offsets(assembly, log, places, _group(assembly).offsets())
    return messages.SinkLag(
        [(*place, offsets.committed, offsets.end, _behind(offsets)) for place, offsets in found.items()]
    )


def _behind(offsets: PartitionOffsets) -> int:
    # Records that were deleted before they were consumed no longer count.
    position = offsets.entry if offsets.committed is None else max(offsets.committed, offsets.begin)
    return max(0, offsets.end - position)


def _partition_offsets(
    assembly: Assembly, log: LogOffsets, places: list[Place], committed: Mapping[Place, int]
) -> dict[Place, PartitionOffsets]:
    begins, ends = log.earliest(places), log.latest(places)
    entries = ends if Clients(assembly, 0).offset_reset == "latest" else begins
    return {
        place: PartitionOffsets(begins[place], ends[place], committed.get(place), entries[place]) for place in places
    }


def _topics(assembly: Assembly, admin: AdminClient) -> tuple[str, ...]:
    config = assembly.config
    assert isinstance(config, SinkConnectorConfig)
    try:
        return TopicChoice(config, assembly.internal_topics).present(admin)
    except KafkaException as error:
        admin.poll(0)  # only here does the client report that its login was refused
        rights = on_topics(config.topics, "Describe")
        reason = explained(error.args[0], ADMIN, *rights)
        raise ConnectError(f"The broker does not list the topics: {reason}") from error


def _chosen(places: list[Place], topics: Mapping[str, list[int] | None] | None) -> list[Place]:
    """Return those of ``places`` that were requested. Raises an error for one that the connector does not consume."""
    if topics is None:
        return places
    known = {topic for topic, _ in places}
    for topic, partitions in topics.items():
        if topic not in known:
            listed = ", ".join(sorted(known)) or "none that is there"
            raise BadRequestError(f"topics: the connector does not consume topic {topic}; it consumes {listed}.")
        if strange := set(partitions or ()) - {partition for name, partition in places if name == topic}:
            raise BadRequestError(f"topics: topic {topic} has no partition {min(strange)}.")
    return [(topic, number) for topic, number in places if topic in topics and number in (topics[topic] or (number,))]


def _admin(assembly: Assembly) -> AdminClient:
    properties = roles.admin_properties(assembly.worker_props, assembly.props)
    return librdkafka.admin(properties, fail_without_login(ADMIN))


def _group(assembly: Assembly) -> ConsumerGroup:
    consumer = roles.sink_consumer_properties(assembly.worker_props, assembly.props, 0)
    client = roles.admin_properties(assembly.worker_props, assembly.props)
    return ConsumerGroup(client, str(consumer.properties["group.id"]))


def _partitions(offsets: Mapping[Place, int | None]) -> dict[TopicPartition, int | None]:
    return {TopicPartition(*place): offset for place, offset in offsets.items()}


def _agreed(assembly: Assembly, offsets: Mapping[Any, Any]) -> bool:
    """Return whether the connector manages its offsets; if it refuses the change, the request was invalid."""
    connector_class: Any = assembly.connector_class
    assembly.hide_secrets()
    try:
        return bool(connector_class.alter_offsets(assembly.connector_config, offsets))
    except ConnectError as error:
        raise BadRequestError(str(error)) from error
