"""Requests to alter offsets (KIP-875), read and answered: functions of what is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from worker.errors import BadRequestError
from worker.supervisor.messages import OffsetPairs

__all__ = ["done_message", "not_stopped", "sink_document", "sink_offsets", "source_document", "source_offsets"]

_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"
_LARGEST_PARTITION: Final = 2**31 - 1
_LARGEST_OFFSET: Final = 2**63 - 1


def source_offsets(given: Sequence[Mapping[str, Any]]) -> OffsetPairs:
    """The source partitions of a request, each with its offset. Where one is named twice the last holds."""
    _check_some(given)
    pairs: OffsetPairs = []
    for item in given:
        partition, offset = item.get("partition"), item.get("offset")
        if not isinstance(partition, dict):
            raise BadRequestError("The partition for a source connector offset has to be an object with its members")
        if offset is not None and not isinstance(offset, dict):
            raise BadRequestError("The offset for a source connector should either be null or an object")
        pairs = [pair for pair in pairs if pair[0] != partition] + [(partition, offset)]
    return pairs


def sink_offsets(given: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int | None]]:
    """The topics and partitions of a request, each with the next offset to consume, or ``None`` to forget it."""
    _check_some(given)
    offsets = {}
    for item in given:
        partition = item.get("partition")
        if not isinstance(partition, dict):
            raise BadRequestError("The partition for a sink connector offset cannot be null or missing")
        if _TOPIC not in partition or _PARTITION not in partition:
            raise BadRequestError(
                f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
            )
        topic = partition[_TOPIC]
        if not isinstance(topic, str) or not topic:
            raise BadRequestError("Kafka topic names must be valid strings and may not be null")
        offsets[topic, _partition(partition[_PARTITION])] = _sink_offset(item.get("offset"))
    return [(topic, partition, offset) for (topic, partition), offset in offsets.items()]


def source_document(pairs: OffsetPairs) -> dict[str, Any]:
    """The offsets of a source as they are answered."""
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in pairs]}


def sink_document(offsets: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """The offsets of a sink as they are answered."""
    return {
        "offsets": [
            {"partition": {_PARTITION: partition, _TOPIC: topic}, "offset": {_OFFSET: offset}}
            for topic, partition, offset in offsets
        ]
    }


def done_message(*, managed: bool, reset: bool) -> str:
    """What is answered to a request that was done."""
    verb = "reset" if reset else "altered"
    if managed:
        return f"The offsets for this connector have been {verb} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {verb} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {verb} in the system that the "
        "connector uses."
    )


def not_stopped(connector: str) -> BadRequestError:
    """The refusal of a request for a connector that may be running."""
    return BadRequestError(
        "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
        f"specified connector by issuing a 'PUT' request to the '/connectors/{connector}/stop' endpoint"
    )


def _check_some(given: Sequence[Mapping[str, Any]]) -> None:
    if not given:
        raise BadRequestError("Partitions / offsets need to be provided for an alter offsets request")


def _partition(value: object) -> int:
    if value is None:
        raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
    if (number := _integer(value)) is None or not 0 <= number <= _LARGEST_PARTITION:
        raise BadRequestError(
            f"Failed to parse the following Kafka partition value in the provided offsets: '{value}'. Partition values "
            "for sink connectors need to be integers."
        )
    return number


def _sink_offset(offset: object) -> int | None:
    if offset is None:
        return None
    if not isinstance(offset, dict) or _OFFSET not in offset:
        raise BadRequestError(f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
    value = offset[_OFFSET]
    if (number := _integer(value)) is None:
        raise BadRequestError(
            f"Failed to parse the following Kafka offset value in the provided offsets: '{value}'. Offset values for "
            "sink connectors need to be integers."
        )
    if not 0 <= number <= _LARGEST_OFFSET:
        raise BadRequestError(f"The offset {number} cannot be committed; the first offset of a partition is 0")
    return number


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(value)
    except ValueError:
        return None
