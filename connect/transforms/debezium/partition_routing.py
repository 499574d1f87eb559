"""PartitionRouting: chooses the partition of change events by fields of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from connect.config import HIGH, LOW, Config, ConfigRuleError, at_least, non_empty_list, option
from connect.data import Record, Schema, Type
from connect.errors import ConfigError
from connect.internals.java.hash_code import hash_code
from connect.transformation import Transformation
from connect.transforms.debezium_unwrap import is_envelope
from connect.transforms.fields.key_or_value import copy_of, require_map

__all__ = ["PartitionRouting", "PartitionRoutingConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "choosing a partition"
_OF_NO_ROW: Final = frozenset({"t", "m"})
_LARGEST_INTEGER: Final = 0x7FFF_FFFF


class PartitionRoutingConfig(Config):
    """The fields that choose the partition."""

    old_keys = MappingProxyType({"partition.payload.field": "partition.payload.fields"})

    partition_payload_fields: tuple[str, ...] = option(
        importance=HIGH,
        validator=non_empty_list,
        doc="The fields of the event, such as after.name, source.table or change.name, where change stands for the row "
        "as it is, or was if it is deleted. Those that are missing or null do not count.",
    )
    partition_topic_num: int = option(
        importance=HIGH, validator=at_least(1), doc="The number of partitions of the topic."
    )
    partition_hash_function: Literal["java", "murmur"] = option(
        default="java",
        importance=LOW,
        ignore_case=True,
        doc="How the fields are hashed: java, as hashCode does. murmur is refused.",
    )

    def check(self) -> list[ConfigError]:
        """Refuse the hash function that differs between versions of Debezium."""
        if self.partition_hash_function == "murmur":
            text = "partition.hash.function=murmur depends on a library of Debezium's: use java"
            return [ConfigRuleError(text, "partition.hash.function")]
        return []


class PartitionRouting(Transformation[PartitionRoutingConfig]):
    """Chooses the partition of a change event by fields of it. Other records pass unchanged."""

    def __init__(self, config: PartitionRoutingConfig) -> None:
        super().__init__(config)
        self._paths = [[step.strip() for step in field.split(".")] for field in config.partition_payload_fields]

    def apply(self, record: R) -> R | None:
        """Return the record with its partition."""
        if record.value is None or not is_envelope(record.value_schema, record.value):
            return record
        event = require_map(record.value, record.value_schema, _PURPOSE)
        if event.get("op") in _OF_NO_ROW:
            return record
        found = [_read(event, record.value_schema, path) for path in self._paths]
        hashes = [hash_code(value, schema) for value, schema in found if value is not None]
        if not hashes:
            return record
        total = sum(hashes) & _LARGEST_INTEGER
        new = copy_of(record)
        new.partition = (0 if total == _LARGEST_INTEGER else total) % self.config.partition_topic_num
        return new


def _read(event: Mapping[str, Any], schema: Schema | None, path: Sequence[str]) -> tuple[Any, Schema | None]:
    """Return the value of a field and its schema."""
    current: Any = event
    for index, name in enumerate(path):
        step = name
        if name == "change" and index < len(path) - 1:
            step = "before" if event.get("op") == "d" else "after"
        if not isinstance(current, Mapping):
            return None, None
        current = current.get(step)
        field = schema.field(step) if schema is not None and schema.type is Type.STRUCT else None
        schema = None if field is None else field.schema
    return current, schema
