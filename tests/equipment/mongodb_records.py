"""Records for the tests of the MongoDB sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from connect.data import SinkRecord

__all__ = ["SINK", "record", "records"]

SINK: Final = "com.mongodb.kafka.connect.sink"


def record(
    value: Any, key: Any = None, *, topic: str = "orders", offset: int = 0, partition: int = 0, **others: Any
) -> SinkRecord:
    """Return a record of a topic."""
    return SinkRecord(
        topic,
        value,
        key=key,
        partition=partition,
        offset=offset,
        original_topic=topic,
        original_partition=partition,
        original_offset=offset,
        **others,
    )


def records(values: Sequence[Any], **others: Any) -> list[SinkRecord]:
    """Return a record for each value or pair of key and value, with offsets from 0."""
    pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
    return [record(value, key, offset=offset, **others) for offset, (key, value) in enumerate(pairs)]
