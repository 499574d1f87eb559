"""Topics and schema names: Debezium's strategies, and the adjustment of names for Avro."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from connect.internals.java.regex import expand, regex_from_java
from connect.kits.cdc.tables import TableId

__all__ = ["STRATEGIES", "NameAdjustmentMode", "TopicNaming", "TopicRouting"]

STRATEGIES: Final = (
    "io.debezium.schema.SchemaTopicNamingStrategy",
    "io.debezium.schema.DefaultTopicNamingStrategy",
    "io.debezium.schema.SchemaRegexTopicNamingStrategy",
    "io.debezium.schema.DefaultRegexTopicNamingStrategy",
)
"""The values of ``topic.naming.strategy``: the schema's name is part of the topic's, or catalog and schema are."""

_BAD_IN_TOPIC: Final = re.compile(r"[^a-zA-Z0-9._-]")
_BAD_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9_.]")
_BAD_IN_FIELD: Final = re.compile(r"[^a-zA-Z0-9_]")
_LONGEST_TOPIC: Final = 249


class NameAdjustmentMode(StrEnum):
    """The values of ``schema.name.adjustment.mode`` and ``field.name.adjustment.mode``."""

    NONE = "none"
    AVRO = "avro"
    AVRO_UNICODE = "avro_unicode"


def adjusted(name: str, mode: NameAdjustmentMode, *, is_field: bool = False) -> str:
    """Return a name that Avro allows, unless the mode is none."""
    if mode is NameAdjustmentMode.NONE:
        return name
    bad = _BAD_IN_FIELD if is_field else _BAD_IN_NAME
    if mode is NameAdjustmentMode.AVRO:
        return _begun(bad.sub("_", name), is_field=is_field)
    # The underscore begins an escape, so it is escaped itself.
    escaped = re.sub(rf"{bad.pattern}|_", lambda match: f"_u{ord(match[0]):04x}", name)
    return escaped if not escaped[:1].isdigit() else f"_u{ord(escaped[0]):04x}{escaped[1:]}"


def _begun(name: str, *, is_field: bool) -> str:
    parts = [name] if is_field else name.split(".")
    return ".".join(f"_{part}" if part[:1].isdigit() else part for part in parts)


@dataclass(frozen=True, slots=True)
class TopicRouting:
    """How a strategy by regular expression renames topics, and tells the tables of one topic apart in their keys."""

    pattern: re.Pattern[str]
    replacement: str
    key_field: str | None
    key_pattern: re.Pattern[str] | None = None
    key_replacement: str = ""

    @classmethod
    def of(
        cls, regex: str, replacement: str, key_field: str | None, key_regex: str, key_replacement: str
    ) -> TopicRouting:
        """Make the routing of the values of ``topic.*`` keys."""
        key_pattern = regex_from_java(key_regex) if key_regex else None
        return cls(regex_from_java(regex), replacement, key_field, key_pattern, key_replacement)

    def topic(self, topic: str) -> str:
        """Return the topic to which records for ``topic`` go."""
        return _replaced(topic, self.pattern, self.replacement)

    def key_fields(self, topic: str) -> Mapping[str, str]:
        """Return the field that tells in a key from which topic its record comes."""
        if self.key_field is None or self.topic(topic) == topic:
            return {}
        value = _replaced(topic, self.key_pattern, self.key_replacement) if self.key_pattern else topic
        return {self.key_field: value}


def _replaced(text: str, pattern: re.Pattern[str], replacement: str) -> str:
    match = pattern.fullmatch(text)
    return expand(replacement, match) if match else text


@dataclass(frozen=True, slots=True)
class TopicNaming:
    """Names the topics and the schemas of a connector."""

    prefix: str
    delimiter: str = "."
    names_catalog: bool = False
    transaction: str = "transaction"
    heartbeat_prefix: str = "__debezium-heartbeat"
    heartbeat_name: str = ""
    schema_names: NameAdjustmentMode = NameAdjustmentMode.NONE
    field_names: NameAdjustmentMode = NameAdjustmentMode.NONE
    routing: TopicRouting | None = None

    def topic(self, table: TableId) -> str:
        """Return the topic of a table's records."""
        name = self._plain_topic(table)
        return name if self.routing is None else _sanitized(self.routing.topic(name))

    def key_field(self, table: TableId) -> Mapping[str, str]:
        """Return the field, if any, that is added to the keys of a table's records."""
        return {} if self.routing is None else self.routing.key_fields(self._plain_topic(table))

    def schema_name(self, table: TableId) -> str:
        """Return the name before ``.Key``, ``.Value`` and ``.Envelope``."""
        return adjusted(self.topic(table), self.schema_names)

    def field_name(self, column: str) -> str:
        """Return the name of a column's field."""
        return adjusted(column, self.field_names, is_field=True)

    def transaction_topic(self) -> str:
        """Return the topic of the beginnings and ends of transactions."""
        return _sanitized(f"{self.prefix}{self.delimiter}{self.transaction}")

    def heartbeat_topic(self) -> str:
        """Return the topic of heartbeats."""
        return _sanitized(self.heartbeat_name or f"{self.heartbeat_prefix}{self.delimiter}{self.prefix}")

    def named(self, name: str) -> str:
        """Return another topic below the prefix."""
        return _sanitized(f"{self.prefix}{self.delimiter}{name}")

    def _plain_topic(self, table: TableId) -> str:
        parts = (table.catalog, table.schema) if self.names_catalog else (table.schema or table.catalog,)
        return _sanitized(self.delimiter.join((self.prefix, *filter(None, parts), table.table)))


def _sanitized(topic: str) -> str:
    return _BAD_IN_TOPIC.sub("_", topic)[:_LONGEST_TOPIC]
