"""TimestampRouter: names topics by day, hour or another span of time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeVar

from connect.config import HIGH, Config, invalid_value, option, validator
from connect.data import Batch, Record
from connect.errors import DataError
from connect.internals.java.date_format import DateFormat
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import copy_of

__all__ = ["TimestampRouter", "TimestampRouterConfig", "date_pattern"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


@validator("pattern of java.text.SimpleDateFormat")
def date_pattern(key: str, value: str) -> None:
    """Refuse text that is no pattern of dates."""
    try:
        DateFormat(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


class TimestampRouterConfig(Config):
    """The names of the new topics."""

    topic_format: str = option(
        default="${topic}-${timestamp}",
        importance=HIGH,
        doc="The new topic. ${topic} stands for the old one, ${timestamp} for the timestamp of the record.",
    )
    timestamp_format: str = option(
        default="yyyyMMdd",
        importance=HIGH,
        validator=date_pattern,
        doc="Format of the timestamp, in UTC, as a pattern of java.text.SimpleDateFormat.",
    )


class TimestampRouter(Transformation[TimestampRouterConfig]):
    """Names the topic by the timestamp of the record."""

    def __init__(self, config: TimestampRouterConfig) -> None:
        super().__init__(config)
        self._format = DateFormat(config.timestamp_format)

    def apply(self, record: R) -> R | None:
        """Return the record with the topic of its timestamp."""
        span = self._span(record.topic, record.timestamp)
        new = copy_of(record)
        new.topic = self._topic(record.topic, span)
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch, divided where the topic changes."""
        batches: list[B] = []
        start = 0
        spans = [self._span(batch.topic, timestamp) for timestamp in batch.timestamps]
        runs = [(span, len(list(run))) for span, run in groupby(spans)]
        for span, length in runs:
            part = batch if len(runs) == 1 else batch.slice(start, start + length)
            batches.append(part.replace(topic=self._topic(batch.topic, span)))
            start += length
        return batches

    def _span(self, topic: str, timestamp: int | None) -> int:
        """Return the number of the time span in which all timestamps are formatted alike."""
        if timestamp is None:
            raise DataError(f"Timestamp missing on record of topic {topic}")
        return timestamp // self._format.resolution_ms

    def _topic(self, topic: str, span: int) -> str:
        written = self._format.format(span * self._format.resolution_ms)
        return self.config.topic_format.replace("${topic}", topic).replace("${timestamp}", written)
