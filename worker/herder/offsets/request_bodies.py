"""The bodies of requests to alter or reset offsets (KIP-875), and of their responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from connect.errors import DataError
from connect.internals.delivery.stored_offsets import check_offset
from worker.errors import BadRequestError
from worker.messages.messages import OffsetPairs

__all__ = [
    "FIELDS",
    "Reset",
    "done_message",
    "iso_date_time",
    "iso_duration",
    "not_stopped",
    "read_reset",
    "refuse_source",
    "sink_document",
    "sink_offsets",
    "source_document",
    "source_offsets",
]

_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"
_LARGEST_PARTITION: Final = 2**31 - 1
_LARGEST_OFFSET: Final = 2**63 - 1
_WAYS: Final = ("to", "to_offset", "shift_by", "to_datetime", "by_duration")
FIELDS: Final = frozenset((*_WAYS, "topics"))
"""The members that a request may have."""

_NAMED: Final = ("earliest", "latest", "current")
_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?P<time>T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def source_offsets(given: Sequence[Mapping[str, Any]]) -> OffsetPairs:
    """Parse source partitions, each with its offset. If one is given twice, the last offset counts."""
    _check_some(given)
    pairs: OffsetPairs = []
    for item in given:
        partition, offset = item.get("partition"), item.get("offset")
        if not isinstance(partition, dict):
            raise BadRequestError("The partition for a source connector offset must be an object with its members")
        if offset is not None and not isinstance(offset, dict):
            raise BadRequestError("The offset for a source connector should either be null or an object")
        _check_storable(partition, offset or {})
        pairs = [pair for pair in pairs if pair[0] != partition] + [(partition, offset)]
    return pairs


def _check_storable(*parts: Mapping[str, Any]) -> None:
    for part in parts:
        try:
            check_offset(part)
        except DataError as error:
            raise BadRequestError(str(error)) from error


def sink_offsets(given: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int | None]]:
    """Parse topics and partitions, each with the next offset to consume, or ``None`` to delete it."""
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
    """Return the response with the offsets of a source."""
    return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in pairs]}


def sink_document(offsets: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Return the response with the offsets of a sink."""
    return {
        "offsets": [
            {"partition": {_PARTITION: partition, _TOPIC: topic}, "offset": {_OFFSET: offset}}
            for topic, partition, offset in offsets
        ]
    }


def done_message(*, managed: bool, reset: bool) -> str:
    """Return the message of a successful response."""
    verb = "reset" if reset else "altered"
    if managed:
        return f"The offsets for this connector have been {verb} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {verb} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {verb} in the system that the connector "
        "uses."
    )


def not_stopped(connector: str) -> BadRequestError:
    """Return the error for a connector that may be running."""
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


@dataclass(frozen=True, slots=True)
class Reset:
    """The target of a reset: ``to`` with its ``number``, as in :func:`worker.runtime.inquiries.offsets.reset_offset`.

    For ``timestamp`` the number is in ms since 1970. ``topics`` has the partitions of each topic, or ``None`` for all
    of a topic's partitions; without ``topics``, all that the connector consumes are reset.
    """

    to: str
    number: int
    topics: dict[str, list[int] | None] | None


def read_reset(body: Mapping[str, Any], now: float) -> Reset:
    """Parse the body of a reset; ``now`` is in seconds since 1970. Raises :class:`BadRequestError`."""
    given = [way for way in _WAYS if way in body]
    if len(given) != 1:
        said = ", ".join(given) or "none"
        raise BadRequestError(f"A reset must have exactly one of {', '.join(_WAYS)}, but this one has {said}.")
    to, number = _target(given[0], body[given[0]], now)
    return Reset(to, number, _topics(body.get("topics")))


def refuse_source(name: str) -> BadRequestError:
    """Return the error for a source, which has no consumer group."""
    return BadRequestError(
        f"Connector {name} is a source, whose offsets have no earliest or latest. Set them with PATCH "
        f"/connectors/{name}/offsets, or delete them with DELETE /connectors/{name}/offsets to read from the beginning."
    )


def iso_duration(text: object) -> timedelta:
    """Parse a duration such as ``P1DT2H``: weeks to seconds. Years and months are refused: their length varies."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    units = {unit: value for unit, value in match.groupdict().items() if unit != "time"} if match is not None else {}
    if match is None or match["time"] == "T" or not any(units.values()):
        raise BadRequestError(
            f"by_duration {text!r} is not a duration such as P7D, PT1H30M or P1DT2H (ISO 8601, without years and "
            "months)."
        )
    try:
        return timedelta(**{unit: float(value) for unit, value in units.items() if value})
    except OverflowError as error:
        raise BadRequestError(f'by_duration is {text!r}, which is too long; use "to": "earliest".') from error


def iso_date_time(text: object) -> datetime:
    """Parse a date and time with a time zone, such as ``2026-01-31T08:00:00Z`` or ``...+01:00``."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise BadRequestError(f"to_datetime {text!r} is not a date and time such as 2026-01-31T08:00:00Z (ISO 8601).")
    if moment.tzinfo is None:
        raise BadRequestError(f"to_datetime {text!r} has no time zone: add Z for UTC, or an offset such as +01:00.")
    return moment


def _target(way: str, value: object, now: float) -> tuple[str, int]:
    if way == "to":
        if value not in _NAMED:
            raise BadRequestError(f"to is {value!r}; it must be one of {', '.join(_NAMED)}.")
        return str(value), 0
    if way == "to_offset":
        return "offset", _whole_number(way, value, least=0)
    if way == "shift_by":
        return "shift", _whole_number(way, value, least=-_LARGEST_OFFSET)
    if way == "to_datetime":
        return "timestamp", _milliseconds(way, iso_date_time(value).timestamp())
    return "timestamp", _milliseconds(way, now - iso_duration(value).total_seconds())


def _milliseconds(way: str, seconds: float) -> int:
    if seconds < 0:
        raise BadRequestError(f'{way} is before 1970, and no record is that old; use "to": "earliest".')
    return int(seconds * 1000)


def _whole_number(way: str, value: object, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= _LARGEST_OFFSET:
        kind = "an offset: a whole number from 0 on" if least == 0 else "a whole number, such as -100"
        raise BadRequestError(f"{way} {value!r} is not {kind}.")
    return value


def _topics(given: object) -> dict[str, list[int] | None] | None:
    if given is None:
        return None
    if isinstance(given, list) and given and all(isinstance(topic, str) and topic for topic in given):
        return dict.fromkeys(given)
    if isinstance(given, dict) and given and all(_are_partitions(partitions) for partitions in given.values()):
        return {topic: sorted(set(partitions)) for topic, partitions in given.items()}
    raise BadRequestError(
        'topics must be an array of topics, ["t"], or an object with the partitions of each, {"t": [0, 1]}.'
    )


def _are_partitions(given: object) -> bool:
    return isinstance(given, list) and bool(given) and all(type(item) is int and 0 <= item < 2**31 for item in given)
