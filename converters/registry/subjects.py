"""The subjects under which a schema registry keeps schemas."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from connect.errors import DataError

__all__ = ["SubjectNameStrategy", "subject_name_strategy"]

_JAVA_PACKAGES: Final = ("io.confluent.kafka.serializers.subject", "io.confluent.kafka.serializers")


class SubjectNameStrategy(StrEnum):
    """The ways to name subjects; the value is the simple name of the Java class."""

    TOPIC_NAME = "TopicNameStrategy"
    RECORD_NAME = "RecordNameStrategy"
    TOPIC_RECORD_NAME = "TopicRecordNameStrategy"

    @property
    def uses_record(self) -> bool:
        """Whether the name of the record is part of the subject."""
        return self is not SubjectNameStrategy.TOPIC_NAME

    def subject(self, topic: str, record_name: str | None, *, is_key: bool) -> str:
        """Return the subject of a schema; ``record_name`` is ``None`` if the schema has no name.

        Raises :class:`~connect.errors.DataError` if the strategy requires a name.
        """
        if self is SubjectNameStrategy.TOPIC_NAME:
            return f"{topic}-{'key' if is_key else 'value'}"
        if record_name is None:
            side = "key" if is_key else "value"
            raise DataError(
                f"In configuration {side}.subject.name.strategy = {self.value}, the message {side} must only be a"
                f" record schema: give the {side} of topic {topic} a schema with a name, or use TopicNameStrategy."
            )
        return record_name if self is SubjectNameStrategy.RECORD_NAME else f"{topic}-{record_name}"


def subject_name_strategy(name: str) -> SubjectNameStrategy | None:
    """Return the strategy with that simple name or Java class, or ``None`` if there is none."""
    package, _, simple = name.rpartition(".")
    if package and package not in _JAVA_PACKAGES:
        return None
    return next((strategy for strategy in SubjectNameStrategy if strategy.value == simple), None)
