"""ByLogicalTableRouter: sends the change events of several tables to one topic."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeVar

from connect.config import LOW, Config, ConfigRuleError, at_least, option, validator
from connect.data import Field, Record, Schema, Type
from connect.errors import ConfigError, DataError
from connect.internals.java.regex import expand, regex_from_java, valid_java_regex
from connect.transformation import Transformation
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import KEY, VALUE, copy_of, require_map

__all__ = ["ByLogicalTableRouter", "ByLogicalTableRouterConfig", "SchemaNames"]

R = TypeVar("R", bound=Record)

_log: Final = logging.getLogger(__name__)
_PURPOSE: Final = "adding the table to the key"
_ROW_PARTS: Final = ("before", "after")


class SchemaNames:
    """Adjusts names of schemas and fields to what Avro allows."""

    def __init__(self, mode: Literal["none", "avro", "avro_unicode"]) -> None:
        self._mode = mode

    def adjusted(self, name: str) -> str:
        """Return the name; with ``avro`` other characters become ``_``, with ``avro_unicode`` their code."""
        if self._mode == "none":
            return name
        return "".join(self._character(character, first=not index) for index, character in enumerate(name))

    def _character(self, character: str, *, first: bool) -> str:
        is_letter = character.isascii() and character.isalpha()
        is_later = character == "." or (character.isascii() and character.isdigit())
        if is_letter or (is_later and not first):
            return character
        return "_" if self._mode == "avro" else f"_u{ord(character):04x}"


@validator("valid regex, or empty")
def _regex_or_nothing(key: str, value: str) -> None:
    if value.strip():
        valid_java_regex(key, value)


class ByLogicalTableRouterConfig(Config):
    """The topics to join, and how their keys stay apart."""

    topic_regex: str = option(
        importance=LOW,
        validator=valid_java_regex,
        doc="The regular expression that the whole name of a topic must match; other records pass unchanged.",
    )
    topic_replacement: str = option(
        importance=LOW, doc="The new topic. $1 and ${name} stand for the groups of the expression."
    )
    key_enforce_uniqueness: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the key gets a field that tells the table, because rows of two tables may have the same key.",
    )
    key_field_regex: str | None = option(
        default=None,
        importance=LOW,
        validator=_regex_or_nothing,
        doc="The regular expression that the whole old topic must match for key.field.replacement to be used.",
    )
    key_field_name: str = option(
        default="__dbz__physicalTableIdentifier", importance=LOW, doc="The name of that field of the key."
    )
    key_field_replacement: str | None = option(
        default=None,
        importance=LOW,
        doc="The value of that field, with $1 and ${name} for the groups of key.field.regex; by default the old topic.",
    )
    schema_name_adjustment_mode: Literal["none", "avro", "avro_unicode"] = option(
        default="none",
        importance=LOW,
        ignore_case=True,
        doc="Whether characters that Avro does not allow in the names of the new schemas become _ (avro) or their code "
        "(avro_unicode).",
    )
    logical_table_cache_size: int = option(
        default=16, importance=LOW, validator=at_least(1), doc="How many topics and schemas are remembered."
    )

    def check(self) -> list[ConfigError]:
        """Refuse an expression for the key without its replacement."""
        if (self.key_field_regex or "").strip() and not (self.key_field_replacement or "").strip():
            text = "key.field.replacement must be non-empty if key.field.regex is set."
            return [ConfigRuleError(text, "key.field.replacement")]
        return []


class ByLogicalTableRouter(Transformation[ByLogicalTableRouterConfig]):
    """Sends the change events of several tables to one topic, and tells the table in their keys."""

    def __init__(self, config: ByLogicalTableRouterConfig) -> None:
        super().__init__(config)
        self._topics = regex_from_java(config.topic_regex)
        has_tables = (config.key_field_regex or "").strip()
        self._tables = regex_from_java(config.key_field_regex or "") if has_tables else None
        self._names = SchemaNames(config.schema_name_adjustment_mode)
        # Schemas are interned, and the entry holds them: their ids stay theirs.
        self._schemas: dict[tuple[int, str], tuple[Schema, Schema]] = {}

    def apply(self, record: R) -> R | None:
        """Return the record with the topic, and with schemas named by it."""
        topic = _replaced(self._topics, self.config.topic_replacement, record.topic)
        if topic is None:
            return record
        if not topic:
            _log.warning("topic.replacement makes an empty topic of %s: its records pass unchanged", record.topic)
            return record
        new = copy_of(record)
        if record.key is None:
            new = KEY.put(new, None, None)
        else:
            new = KEY.put(new, self._key_schema(record.key_schema, topic), self._key(record))
        if record.value_schema is not None and record.value is not None and is_envelope(record.value_schema, None):
            new = VALUE.put(new, self._renamed(record.value_schema, topic, _envelope), record.value)
        new.topic = topic
        return new

    def _key(self, record: Record) -> dict[str, Any]:
        key = require_map(record.key, record.key_schema, _PURPOSE)
        if not self.config.key_enforce_uniqueness:
            return dict(key)
        named = _replaced(self._tables, self.config.key_field_replacement or "", record.topic)
        return {**key, self.config.key_field_name: record.topic if named is None else named}

    def _key_schema(self, schema: Schema | None, topic: str) -> Schema | None:
        return None if schema is None else self._renamed(schema, topic, self._new_key)

    def _new_key(self, schema: Schema, topic: str, names: SchemaNames) -> Schema:
        fields = {field.name: field.schema for field in schema.fields}
        if self.config.key_enforce_uniqueness:
            if self.config.key_field_name in fields:
                raise DataError(f"The key has a field {self.config.key_field_name} already: set another key.field.name")
            fields[self.config.key_field_name] = Schema.string()
        return schema.replace(name=names.adjusted(f"{topic}.Key"), fields=_members(fields), default=None)

    def _renamed(self, schema: Schema, topic: str, make: Any) -> Schema:
        entry = self._schemas.get((id(schema), topic))
        if entry is None:
            entry = (schema, make(schema, topic, self._names))
            if len(self._schemas) >= 2 * self.config.logical_table_cache_size:
                del self._schemas[next(iter(self._schemas))]
            self._schemas[id(schema), topic] = entry
        return entry[1]


def _envelope(schema: Schema, topic: str, names: SchemaNames) -> Schema:
    fields = {field.name: field.schema for field in schema.fields}
    for part in _ROW_PARTS:
        if part in fields and fields[part].type is Type.STRUCT:
            fields[part] = fields[part].replace(name=names.adjusted(f"{topic}.Value"))
    return schema.replace(name=names.adjusted(f"{topic}.Envelope"), fields=_members(fields), default=None)


def _members(fields: Mapping[str, Schema]) -> list[Field]:
    return [Field(name, schema, index) for index, (name, schema) in enumerate(fields.items())]


def _replaced(pattern: re.Pattern[str] | None, replacement: str, text: str) -> str | None:
    """Return the replacement of a text that matches as a whole, or ``None``."""
    if pattern is None or pattern.fullmatch(text) is None:
        return None
    try:
        return pattern.sub(lambda match: expand(replacement, match), text, count=1)
    except (IndexError, ValueError) as error:
        raise DataError(f"Replacement {replacement} of topic {text}: {error}") from error
