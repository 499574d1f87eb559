"""InsertField: inserts fields with the origin of a record, or with a static value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from connect.config import MEDIUM, Config, ConfigRuleError, option
from connect.data import (
    Batch,
    Constant,
    Field,
    Record,
    Schema,
    SinkBatch,
    SinkRecord,
    StructColumn,
    ValueColumn,
    timestamp_schema,
)
from connect.data.logical import EPOCH, timestamp_from_milliseconds
from connect.errors import ConfigError, DataError
from connect.transforms.fields.key_or_value import (
    KeyOrValueTransformation,
    SchemaCache,
    require_map,
    require_struct_schema,
    type_name,
)
from connect.transforms.fields.options import replace_null_with_default
from connect.transforms.fields.struct_change import Defaults, defaults_of, with_defaults

__all__ = ["InsertField", "InsertFieldConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_PURPOSE: Final = "field insertion"
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
_MARKS: Final = "Suffix it with ! to make the field required, with ? (the default) to keep it optional."


class InsertFieldConfig(Config):
    """The fields to insert, and their names."""

    topic_field: str | None = option(default=None, importance=MEDIUM, doc=f"Field for the name of the topic. {_MARKS}")
    partition_field: str | None = option(
        default=None, importance=MEDIUM, doc=f"Field for the number of the partition. {_MARKS}"
    )
    offset_field: str | None = option(
        default=None, importance=MEDIUM, doc=f"Field for the offset, in sinks only. {_MARKS}"
    )
    timestamp_field: str | None = option(
        default=None, importance=MEDIUM, doc=f"Field for the timestamp of the record. {_MARKS}"
    )
    static_field: str | None = option(default=None, importance=MEDIUM, doc=f"Field for a static value. {_MARKS}")
    static_value: str | None = option(default=None, importance=MEDIUM, doc="The value of the static field.")
    replace_null_with_default: bool = replace_null_with_default()

    def check(self) -> list[ConfigError]:
        """Refuse a configuration without a field to insert, or without the value of the static field."""
        fields = (
            self.topic_field,
            self.partition_field,
            self.offset_field,
            self.timestamp_field,
            self.static_field,
        )
        if all(field is None for field in fields):
            return [ConfigRuleError("No field insertion configured", "static.field")]
        if self.static_field is not None and self.static_value is None:
            return [ConfigError("static.value", None, f"No value specified for static field: {self.static_field}")]
        return []


class _Insertion(NamedTuple):
    """A field to insert: its name, its schema, the source of its value, and whether it is a timestamp."""

    name: str
    schema: Schema
    of_record: Callable[[Any], Any]
    of_batch: Callable[[Any], Sequence[Any]]
    is_timestamp: bool = False


def _insertions(config: InsertFieldConfig) -> Iterator[_Insertion]:
    if config.topic_field is not None:
        topics = _repeated(attrgetter("topic"))
        yield _Insertion(*_named(config.topic_field, Schema.string()), attrgetter("topic"), topics)
    if config.partition_field is not None:
        partitions = attrgetter("partitions")
        yield _Insertion(*_named(config.partition_field, Schema.int32()), attrgetter("partition"), partitions)
    if config.offset_field is not None:
        yield _Insertion(*_named(config.offset_field, Schema.int64()), _record_offset, _batch_offsets)
    if config.timestamp_field is not None:
        field = _named(config.timestamp_field, timestamp_schema())
        yield _Insertion(*field, attrgetter("timestamp"), attrgetter("timestamps"), is_timestamp=True)
    if config.static_field is not None:
        value = config.static_value
        field = _named(config.static_field, Schema.string())
        yield _Insertion(*field, lambda _: value, _repeated(lambda _: value))


def _named(text: str, schema: Schema) -> tuple[str, Schema]:
    """Return the name of a field without its mark, and the schema that the mark requires."""
    if text.endswith("!"):
        return text[:-1], schema
    return text.removesuffix("?"), schema.as_optional()


def _repeated(value_of: Callable[[Any], Any]) -> Callable[[Batch[Any]], Sequence[Any]]:
    return lambda batch: Constant(value_of(batch), len(batch))


def _instant(milliseconds: int) -> dt.datetime:
    try:
        # This costs less than half of creating a timedelta, for every record.
        return EPOCH + _MILLISECOND * milliseconds
    except OverflowError:
        return timestamp_from_milliseconds(milliseconds)


def _record_offset(record: Record) -> int:
    if not isinstance(record, SinkRecord):
        raise _no_offset(record)
    return record.offset


def _batch_offsets(batch: Batch[Any]) -> Sequence[int]:
    if not isinstance(batch, SinkBatch):
        raise _no_offset(next(iter(batch)))
    return batch.offsets


def _no_offset(record: Record) -> DataError:
    return DataError(f"Only SinkRecord supported for [{_PURPOSE}], found: {type_name(record)}")


class _Plan(NamedTuple):
    """The results for one schema: the schema with the inserted fields, and the defaults of its own fields."""

    schema: Schema | None
    defaults: Defaults


class InsertField(KeyOrValueTransformation[InsertFieldConfig]):
    """Inserts fields with the topic, partition, offset or timestamp of the record, or a static value."""

    def __init__(self, config: InsertFieldConfig) -> None:
        super().__init__(config)
        self._insertions = tuple(_insertions(config))
        self._clashes = len({insertion.name for insertion in self._insertions}) < len(self._insertions)
        self._plans = SchemaCache(self._plan)

    def apply(self, record: R) -> R | None:
        """Return the record with the fields inserted."""
        schema, data = self.side.read(record)
        if data is None:
            return record
        new_schema, defaults = self._plans(schema)
        new = with_defaults(require_map(data, schema, _PURPOSE), defaults)
        for name, _, read, _, is_timestamp in self._insertions:
            found = read(record)
            if found is None:
                if schema is not None:
                    new[name] = None
            else:
                new[name] = _instant(found) if is_timestamp and schema is not None else found
        return self.side.put(record, new_schema, new)

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the fields inserted."""
        column = self.side.column(batch)
        if isinstance(column, StructColumn) and (extended := self._extended(batch, column)) is not None:
            return [self.side.put_column(batch, extended)]
        values, schema = column.values(), column.schema
        if self._clashes or set(map(type, values)) != {dict}:
            return super().apply_batch(batch)
        new_schema, defaults = self._plans(schema)
        found = self._found(batch, schema)
        if schema is None and any(
            None in items for items in found.values() if not isinstance(items, (Constant, range))
        ):
            return super().apply_batch(batch)
        if defaults:
            values = [with_defaults(value, defaults) for value in values]
        # Names must keep their order, so fields whose values differ get their place before they are filled in.
        inserted = {name: items.value if isinstance(items, Constant) else None for name, items in found.items()}
        while inserted and not isinstance(found[last := next(reversed(inserted))], Constant):
            del inserted[last]
        new = [{**value, **inserted} for value in values]
        for name, items in found.items():
            if not isinstance(items, Constant):
                for value, item in zip(new, items, strict=True):
                    value[name] = item
        return [self.side.put_column(batch, ValueColumn(new, new_schema))]

    def _extended(self, batch: Batch[Any], column: StructColumn) -> StructColumn | None:
        """Return the column with the fields inserted, or ``None`` if nulls in it must be replaced first."""
        new_schema, defaults = self._plans(column.schema)
        if new_schema is None or defaults:
            return None
        return StructColumn({**column.fields, **self._found(batch, column.schema)}, new_schema)

    def _found(self, batch: Batch[Any], schema: Schema | None) -> dict[str, Sequence[Any]]:
        """Return the values to insert into a batch, by field name: a :class:`Constant` if all are equal.

        Without a schema, a field is left out if its value is null for all records.
        """
        found: dict[str, Sequence[Any]] = {}
        for insertion in self._insertions:
            items = insertion.of_batch(batch)
            if insertion.is_timestamp and schema is not None:
                items = [None if item is None else _instant(item) for item in items]
            if schema is not None or not (isinstance(items, Constant) and items.value is None):
                found[insertion.name] = items
        return found

    def _plan(self, schema: Schema | None) -> _Plan:
        if schema is None:
            return _Plan(None, [])
        require_struct_schema(schema, _PURPOSE)
        inserted = [Field(insertion.name, insertion.schema, 0) for insertion in self._insertions]
        # As in Java, the new struct is not optional and has no default, even if the old one was or had.
        new = schema.replace(fields=[*schema.fields, *inserted], optional=False, default=None)
        return _Plan(new, defaults_of(schema) if self.config.replace_null_with_default else [])
