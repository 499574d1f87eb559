"""The options that all Spark sources share: the topic of a row, and its key and timestamp."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from connect.config import HIGH, LOW, MEDIUM, Config, matches, non_empty, option
from connect.errors import ConfigError

__all__ = ["FineTimes", "RowOptions"]

_RECORDS: Final = "Records"


class FineTimes(StrEnum):
    """How to treat time columns, which count microseconds in Spark and milliseconds in Connect."""

    REFUSE = "refuse"
    TRUNCATE = "truncate"
    NUMBER = "number"


class RowOptions(Config):
    """The options that decide how a row becomes a record."""

    topic: str = option(
        importance=HIGH,
        validator=matches(r"([A-Za-z0-9._-]|\$\{(folder|table)\})+", "name of a topic"),
        group=_RECORDS,
        doc=(
            "The topic for the rows. ${folder} stands for the folder of a file, ${table} for the name of a "
            "table, with dots between their parts."
        ),
    )
    columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_RECORDS,
        doc=(
            "The columns that become fields of the value, in this order; by default all. Leave out columns "
            "whose type records cannot hold."
        ),
    )
    key_columns: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        group=_RECORDS,
        doc="The columns that become fields of the key. Without them records have no key.",
    )
    timestamp_column: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_RECORDS,
        doc=(
            "The column for the record's timestamp: a time, a date, or milliseconds since 1970. Without it, "
            "or where it is null, the timestamp is the time of sending."
        ),
    )
    fine_times: FineTimes = option(
        default=FineTimes.REFUSE,
        importance=LOW,
        group=_RECORDS,
        doc=(
            "What to do with times, which count microseconds in Spark but milliseconds in records. refuse: "
            "treat a row with a finer time than a millisecond as bad. truncate: cut off the finer digits. "
            "number: read times as microseconds since 1970."
        ),
    )

    def topic_of(self, **names: str) -> str:
        """Return the topic, with the placeholders in braces replaced by these names."""
        topic = self.topic
        for word, name in names.items():
            topic = topic.replace(f"${{{word}}}", name)
        return topic

    def topic_mistakes(self, *words: str) -> Iterable[ConfigError]:
        """Yield an error if the topic contains a placeholder in braces that is not among ``words``."""
        for word in ("folder", "table"):
            if f"${{{word}}}" in self.topic and word not in words:
                known = " or ".join(f"${{{each}}}" for each in words)
                reason = f"This source knows no ${{{word}}}: use {known}." if known else "Write the topic's name."
                yield ConfigError("topic", self.topic, reason)

    def own_settings(self) -> Mapping[str, str]:
        """Return the connector's properties that have a value."""
        return {key: value for key, value in self.originals.items() if value is not None}
