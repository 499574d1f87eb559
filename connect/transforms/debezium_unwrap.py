"""DebeziumUnwrap: replaces Debezium's change events with their rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar

from connect.config import LOW, MEDIUM, Config, invalid_value, option
from connect.data import Batch, Field, Headers, Record, Schema, Type, ValueColumn
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.fields.field_path import FieldPath, FieldTree
from connect.transforms.fields.key_or_value import SchemaCache, copy_of, require_map
from connect.transforms.fields.options import replace_null_with_default
from connect.transforms.fields.struct_change import defaults_of, with_defaults
from connect.transforms.replace_field import Selection, select_fields

__all__ = [
    "ChangeEventConfig",
    "DebeziumUnwrap",
    "DebeziumUnwrapConfig",
    "EnvelopeField",
    "headers_with",
    "is_envelope",
    "parse_envelope_field",
    "tombstone",
]

_OF_TRANSACTION: Final = frozenset({"id", "total_order", "data_collection_order"})
_OF_ENVELOPE: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})


@dataclass(frozen=True, slots=True)
class EnvelopeField:
    """A field of the envelope or of its struct ``parent``, and the field's name in the row."""

    parent: str | None
    field: str
    name: str

    def schema_in(self, envelope: Schema) -> Schema | None:
        """Return the schema of the field, made optional, or ``None`` if there is no such field."""
        holder: Schema | None = envelope
        if self.parent is not None:
            parent = envelope.field(self.parent)
            holder = parent.schema if parent is not None and parent.schema.type is Type.STRUCT else None
        found = holder.field(self.field) if holder is not None else None
        found = found or envelope.field(self.field)
        return None if found is None else found.schema.replace(optional=True, default=None)

    def read(self, envelope: Mapping[str, Any]) -> Any:
        """Return the value of the field, or null if the field or its parent is missing."""
        if self.parent is None:
            return envelope.get(self.field)
        holder = envelope.get(self.parent)
        if isinstance(holder, Mapping) and self.field in holder:
            return holder[self.field]
        return envelope.get(self.field)


def parse_envelope_field(text: str, prefix: str) -> EnvelopeField:
    """Parse ``op``, ``source.lsn`` or ``source.lsn:position``; raise ``ValueError`` for other forms."""
    path, *renamed = text.split(":")
    parent, _, field = path.strip().rpartition(".")
    if not field or len(renamed) > 1 or "." in parent:
        raise ValueError(f"Unexpected field name: {text}")
    name = f"{parent}_{field}" if parent else field
    if not parent and field in _OF_TRANSACTION:
        parent = "transaction"
    elif not parent and field not in _OF_ENVELOPE:
        parent = "source"
    return EnvelopeField(parent or None, field, prefix + (renamed[0] if renamed else name))


def is_envelope(schema: Schema | None, value: Any) -> bool:
    """Return whether a value is a change event, judged by its schema's name or, without a schema, by its fields."""
    if schema is not None:
        return schema.name is not None and schema.name.endswith(".Envelope")
    return (
        isinstance(value, Mapping) and "op" in value and "source" in value and ("after" in value or "before" in value)
    )


R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])

_log: Final = logging.getLogger(__name__)
_DELETED: Final = "__deleted"
_PURPOSE: Final = "dropping fields"


class Deletes(NamedTuple):
    """The handling of a delete event and of the tombstone after it."""

    events: Literal["drop", "null", "tombstone", "rewrite"]
    keeps_tombstones: bool


_MODES: Final[Mapping[str, Deletes]] = {
    "drop": Deletes("drop", keeps_tombstones=False),
    "tombstone": Deletes("null", keeps_tombstones=False),
    "rewrite": Deletes("rewrite", keeps_tombstones=False),
    "rewrite-with-tombstone": Deletes("rewrite", keeps_tombstones=True),
    "delete-to-tombstone": Deletes("tombstone", keeps_tombstones=False),
}


class ChangeEventConfig(Config):
    """The handling of deletes, and the fields of the event to add to the row or document."""

    delete_tombstone_handling_mode: Literal[
        "drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"
    ] = option(
        default="tombstone",
        importance=MEDIUM,
        ignore_case=True,
        doc="Handling of a delete event and of the tombstone after it. drop: both are dropped. tombstone: the "
        "event becomes a null value with the schema of the row, the tombstone is dropped. rewrite: the event becomes "
        "the row as it was, and every row gets the field __deleted; the tombstone is dropped, or with "
        "rewrite-with-tombstone kept. delete-to-tombstone: the event becomes a tombstone without schema.",
    )
    delete_handling_mode: Literal["drop", "rewrite", "none"] | None = option(
        default=None,
        importance=LOW,
        ignore_case=True,
        doc="The older option for delete events; it counts if it is set.",
    )
    drop_tombstones: bool | None = option(
        default=None, importance=LOW, doc="The older option for tombstones; it counts if it is set."
    )
    route_by_field: str = option(
        default="", importance=LOW, doc="The field of the row that names the topic the record goes to."
    )
    add_fields_prefix: str = option(default="__", importance=LOW, doc="Prefix of the names of added fields.")
    add_fields: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        doc="Fields of the event to add to the row, such as op, source.lsn or source.ts_ms:changed_at.",
    )
    add_headers_prefix: str = option(default="__", importance=LOW, doc="Prefix of the keys of added headers.")
    add_headers: tuple[str, ...] = option(
        default=(), importance=LOW, doc="Fields of the event to add as headers, named as in add.fields."
    )

    def check(self) -> list[ConfigError]:
        """Refuse malformed references to fields."""
        errors: list[ConfigError] = []
        for key, texts in (("add.fields", self.add_fields), ("add.headers", self.add_headers)):
            try:
                list(_references(texts, ""))
            except ValueError as error:
                errors.append(invalid_value(key, texts, str(error)))
        return errors

    @property
    def deletes(self) -> Deletes:
        """The three options for deletes, combined."""
        mode = _MODES[self.delete_tombstone_handling_mode]
        if self.delete_handling_mode is None and self.drop_tombstones is None:
            return mode
        events: Any = {"none": "null", None: "null"}.get(self.delete_handling_mode, self.delete_handling_mode)
        return Deletes(events, keeps_tombstones=self.drop_tombstones is False)

    @property
    def added_fields(self) -> list[EnvelopeField]:
        """The fields of the event that the row gets."""
        return list(_references(self.add_fields, self.add_fields_prefix))

    @property
    def added_headers(self) -> list[EnvelopeField]:
        """The fields of the event that become headers."""
        return list(_references(self.add_headers, self.add_headers_prefix))


class DebeziumUnwrapConfig(ChangeEventConfig):
    """The handling of deletes and of nulls, and the fields to add and to drop."""

    replace_null_with_default: bool = replace_null_with_default()
    drop_fields_header_name: str = option(
        default="", importance=LOW, doc="The header that lists fields which are to be removed from the row."
    )
    drop_fields_from_key: bool = option(
        default=False, importance=LOW, doc="Whether those fields are removed from the key too."
    )
    drop_fields_keep_schema_compatible: bool = option(
        default=True, importance=LOW, doc="Whether only those of them are removed that are optional."
    )


def _references(texts: Sequence[str], prefix: str) -> Iterator[EnvelopeField]:
    for text in texts:
        yield parse_envelope_field(text, prefix)


def tombstone(record: R, added: Sequence[EnvelopeField]) -> R:
    """Return a tombstone with the operation as a header, if that is among the headers to add."""
    operation = [reference for reference in added if reference.field == "op"]
    if not operation:
        return record
    new = copy_of(record)
    for reference in operation:
        new.headers = new.headers.add(reference.name, "d", Schema.string())
    return new


def headers_with(record: Record, added: Sequence[EnvelopeField]) -> Headers:
    """Return the headers of a change event with fields of it added; a field that its schema lacks is left out."""
    headers = record.headers
    for reference in added:
        schema = None
        if record.value_schema is not None:
            schema = reference.schema_in(record.value_schema)
            if schema is None:
                continue
        headers = headers.add(reference.name, reference.read(record.value), schema)
    return headers


class _Unwrapping(NamedTuple):
    """The steps that extract the rows from events of one schema."""

    schema: Schema | None
    row: Callable[[Mapping[str, Any]], Any]


class DebeziumUnwrap(Transformation[DebeziumUnwrapConfig]):
    """Replaces Debezium's change events with the rows as they are now. Other records pass unchanged."""

    def __init__(self, config: DebeziumUnwrapConfig) -> None:
        super().__init__(config)
        self._deletes = config.deletes
        self._fields = config.added_fields
        self._headers = config.added_headers
        self._after = SchemaCache(lambda schema: self._unwrapping(schema, "after"))
        self._before = SchemaCache(lambda schema: self._unwrapping(schema, "before"))
        self._plain = not (self._headers or config.route_by_field or config.drop_fields_header_name)

    def apply(self, record: R) -> R | None:
        """Return the record with the row as its value."""
        if record.value is None:
            return tombstone(record, self._headers) if self._deletes.keeps_tombstones else None
        if not is_envelope(record.value_schema, record.value):
            _log.debug("A record of topic %s is not a change event and passes unchanged", record.topic)
            return record
        event = require_map(record.value, record.value_schema, "unwrapping a change event")
        if event.get("op") == "t":
            return None
        deleted = event.get("after") is None
        if deleted and self._deletes.events == "drop":
            return None
        new = copy_of(record)
        new.value_schema, new.value = self._row(record, deleted=deleted)
        new.topic = self._topic(record, deleted=deleted)
        new.headers = headers_with(record, self._headers)
        return self._without_fields(new) if self.config.drop_fields_header_name else new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the rows as its values."""
        schema, values = batch.value_schema, batch.value.values()
        if not self._plain or not all(_is_upsert(schema, value) for value in values):
            return super().apply_batch(batch)
        unwrapping = self._after(schema)
        row = unwrapping.row
        return [batch.replace(value=ValueColumn([row(value) for value in values], unwrapping.schema))]

    def _row(self, record: Record, *, deleted: bool) -> tuple[Schema | None, Any]:
        """Return the schema and the value that replace an event."""
        if not deleted:
            unwrapping = self._after(record.value_schema)
            return unwrapping.schema, unwrapping.row(record.value)
        if self._deletes.events == "tombstone":
            return None, None
        if self._deletes.events == "null":
            return self._row_schema(record.value_schema, "after"), None
        unwrapping = self._before(record.value_schema)
        if record.value.get("before") is None:
            return unwrapping.schema and unwrapping.schema.as_optional(), None
        return unwrapping.schema, unwrapping.row(record.value)

    def _row_schema(self, envelope: Schema | None, part: str) -> Schema | None:
        if envelope is None:
            return None
        field = envelope.field(part)
        if field is None:
            raise DataError(f"The change event has no field {part}")
        return field.schema

    def _unwrapping(self, envelope: Schema | None, part: str) -> _Unwrapping:
        """Return the steps for the row ``part``, with added fields, and with __deleted if deletes are rewritten."""
        row_schema = self._row_schema(envelope, part)
        rewrites = self._deletes.events == "rewrite"
        if not rewrites and not self._fields:
            return _Unwrapping(row_schema, lambda event: event[part])
        added = {_DELETED: "true" if part == "before" else "false"} if rewrites else {}
        references = self._present(envelope)
        fills = rewrites and self.config.replace_null_with_default and row_schema is not None
        defaults = defaults_of(row_schema) if fills and row_schema is not None else []

        def row(event: Mapping[str, Any]) -> dict[str, Any]:
            found = {name: reference.read(event) for name, reference, _ in references}
            return {**with_defaults(event[part], defaults), **added, **found}

        if row_schema is None:
            return _Unwrapping(None, row)
        members = [Field(name, Schema.string(optional=True), 0) for name in added]
        members += [Field(name, schema, 0) for name, _, schema in references if schema is not None]
        fields = [*row_schema.fields, *members]
        return _Unwrapping(row_schema.replace(fields=fields, optional=False, default=None), row)

    def _present(self, envelope: Schema | None) -> list[tuple[str, EnvelopeField, Schema | None]]:
        """Return the fields to add, without those that the schema lacks."""
        if envelope is None:
            return [(reference.name, reference, None) for reference in self._fields]
        found = [(reference.name, reference, reference.schema_in(envelope)) for reference in self._fields]
        return [item for item in found if item[2] is not None]

    def _topic(self, record: Record, *, deleted: bool) -> str:
        if not self.config.route_by_field:
            return record.topic
        row = record.value.get("before" if deleted else "after")
        named = row.get(self.config.route_by_field) if isinstance(row, Mapping) else None
        return named if isinstance(named, str) and named.strip() else record.topic

    def _without_fields(self, record: R) -> R:
        """Return the record without the fields listed in its header."""
        header = record.headers.last_with_key(self.config.drop_fields_header_name)
        if header is None or not header.value:
            return record
        if not isinstance(header.value, (list, tuple)):
            raise DataError(f"Header {header.key} must be a list of fields, but is {header.value!r}")
        names = [str(name) for name in header.value]
        new = copy_of(record)
        if record.value is not None:
            new.value_schema, new.value = self._dropped(record.value_schema, record.value, names)
        if record.key is not None and self.config.drop_fields_from_key:
            new.key_schema, new.key = self._dropped(record.key_schema, record.key, names)
        return new

    def _dropped(self, schema: Schema | None, value: Any, names: list[str]) -> tuple[Schema | None, Any]:
        if schema is not None and self.config.drop_fields_keep_schema_compatible:
            fields = [schema.field(name) for name in names]
            names = [field.name for field in fields if field is not None and field.schema.optional]
        exclude = FieldTree.of((FieldPath(name, (name,)), "") for name in names)
        defaults = self.config.replace_null_with_default
        selected = select_fields(schema, Selection(exclude, None, FieldTree()), purpose=_PURPOSE, defaults=defaults)
        return selected.schema, selected.value(value)


def _is_upsert(schema: Schema | None, value: Any) -> bool:
    return is_envelope(schema, value) and value is not None and value.get("after") is not None and value["op"] != "t"
