"""Recordings of Apache Kafka's MirrorMaker 2: vectors of its classes, and dumps of two clusters."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Recorded", "dump", "dumped_topics", "mirror_vectors", "recorded_steps"]

_DATA: Final = Path(__file__).parents[1] / "parity" / "data" / "mirror"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record of a dump; ``timestamp_type`` is 1 if its producer set the time, and 2 if the broker did."""

    cluster: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    decoded: dict[str, Any] | None
    """The decoded fields of an internal record of the mirror."""


def mirror_vectors(suite: str) -> list[dict[str, Any]]:
    """The cases of one suite of ``vectors.json``."""
    cases: list[dict[str, Any]] = json.loads((_DATA / "vectors.json").read_text(encoding="utf-8"))[suite]
    return cases


def recorded_steps(name: str) -> list[dict[str, Any]]:
    """The lines of a recording, such as ``scenario`` or ``failures``, in order."""
    with (_DATA / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def dump(name: str) -> list[Recorded]:
    """The records of ``dump_<name>.jsonl``: ``one_way``, ``active_active`` or ``dedicated``."""
    return [_recorded(line) for line in recorded_steps(f"dump_{name}") if "offset" in line]


def dumped_topics(name: str, cluster: str) -> dict[str, dict[int, list[Recorded]]]:
    """The records of one cluster of a dump, by topic and partition, in the order of their offsets."""
    topics: dict[str, dict[int, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(dump(name), key=lambda record: record.offset):
        if record.cluster == cluster:
            topics[record.topic][record.partition].append(record)
    return {topic: dict(partitions) for topic, partitions in topics.items()}


def _recorded(line: dict[str, Any]) -> Recorded:
    return Recorded(
        line["cluster"],
        line["topic"],
        line["partition"],
        line["offset"],
        line["timestamp"],
        line["timestamp_type"],
        _bytes(line["key"]),
        _bytes(line["value"]),
        tuple((name, _bytes(value)) for name, value in line.get("headers", ())),
        line.get("decoded"),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
