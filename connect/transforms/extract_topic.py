"""ExtractTopic: sends a record to the topic that its key, its value or a header names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar, Literal, TypeVar

from connect.config import MEDIUM, Config, ConfigRuleError, option
from connect.data import Batch, Record, Schema
from connect.data.values import convert_to_string
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.fields.field_path import FieldSyntax, parse_field_path
from connect.transforms.fields.json_path import JsonPath
from connect.transforms.fields.key_or_value import KeyOrValueTransformation, copy_of, require_map, type_name
from connect.transforms.fields.options import field_syntax_version

__all__ = ["ExtractTopic", "ExtractTopicConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class ExtractTopicConfig(Config):
    """The field or header that names the topic."""

    field: str = option(
        default="",
        importance=MEDIUM,
        doc="The field, or the key of the header, that names the topic. If empty, the whole key or value names it.",
    )
    field_name: str = option(default="", importance=MEDIUM, doc="Another name of the option field.")
    field_format: Literal["PLAIN", "JSON_PATH"] = option(
        default="PLAIN",
        importance=MEDIUM,
        doc="Syntax of the field: as in other transformations, or a JSON path.",
    )
    skip_missing_or_null: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a record that names no topic keeps its topic; otherwise it fails.",
    )
    field_syntax_version: FieldSyntax = field_syntax_version()

    def check(self) -> list[ConfigError]:
        """Refuse malformed paths."""
        if self.field and self.field_name:
            return [ConfigRuleError("Set field or field.name, not both", "field", "field.name")]
        parse_field_path(self.named, self.field_syntax_version)
        if self.field_format == "JSON_PATH":
            JsonPath(self.named, "field")
        return []

    @property
    def named(self) -> str:
        """The field that names the topic."""
        return self.field or self.field_name


class _TopicExtraction(Transformation[ExtractTopicConfig]):
    """Sends records to the topics that they name."""

    def apply(self, record: R) -> R | None:
        """Return the record with the topic that it names."""
        topic = self._topic(record)
        if topic is None or topic == record.topic:
            return record
        new = copy_of(record)
        new.topic = topic
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch, divided where the topic changes."""
        batches: list[B] = []
        start = 0
        topics = [self._topic(record) or batch.topic for record in batch]
        for topic, run in groupby(topics):
            stop = start + len(list(run))
            batches.append(batch.slice(start, stop).replace(topic=topic))
            start = stop
        return batches

    def _topic(self, record: Record) -> str | None:
        found, place = self._named(record)
        if isinstance(found, (str, int, float)) and (text := convert_to_string(None, found)):
            return text
        if found is not None and found != "":
            raise DataError(f"{place} must name a topic but is of type {type_name(found)}")
        if self.config.skip_missing_or_null:
            return None
        raise DataError(f"{place} must name a topic but is missing, null or empty")

    @abstractmethod
    def _named(self, record: Record) -> tuple[Any, str]:
        """Return the value that names the topic, and a description of its place for errors."""


class ExtractTopic(_TopicExtraction, KeyOrValueTransformation[ExtractTopicConfig]):
    """Sends records to the topic that the key or the value names, or with ``ExtractTopic$Header`` a header."""

    Header: ClassVar[type[_TopicExtraction]]

    def __init__(self, config: ExtractTopicConfig) -> None:
        super().__init__(config)
        self._path = parse_field_path(config.named, config.field_syntax_version)
        self._json_path = JsonPath(config.named, "field") if config.field_format == "JSON_PATH" else None

    def _named(self, record: Record) -> tuple[Any, str]:
        side = self.side
        schema, data = side.read(record)
        if not self.config.named:
            return data, side.name
        return self._field(data, schema), f"{self.config.named} in {side.name}"

    def _field(self, data: Any, schema: Schema | None) -> Any:
        if data is None:
            return None
        if self._json_path is not None:
            return next(iter(self._json_path.select(data)), None)
        return self._path.read(require_map(data, schema, "extracting the topic"))


class _HeaderTopic(_TopicExtraction):
    """Sends records to the topic that a header names."""

    def __init__(self, config: ExtractTopicConfig) -> None:
        if not config.named:
            raise ConfigRuleError('Missing required configuration "field" which has no default value.', "field")
        super().__init__(config)

    def _named(self, record: Record) -> tuple[Any, str]:
        header = record.headers.last_with_key(self.config.named)
        return (None if header is None else header.value), f"header {self.config.named}"


_HeaderTopic.__name__, _HeaderTopic.__qualname__ = "Header", "ExtractTopic.Header"
ExtractTopic.Header = _HeaderTopic
