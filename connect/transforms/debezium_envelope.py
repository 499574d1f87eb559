"""The envelope in which Debezium wraps a changed row, and references to what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema, Type

__all__ = ["EnvelopeField", "is_envelope", "parse_envelope_field"]

_OF_TRANSACTION: Final = frozenset({"id", "total_order", "data_collection_order"})
_OF_ENVELOPE: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})


@dataclass(frozen=True, slots=True)
class EnvelopeField:
    """A field of the envelope, or of the struct ``parent`` in it, and what it is to be called outside."""

    parent: str | None
    field: str
    name: str

    def schema_in(self, envelope: Schema) -> Schema | None:
        """The schema of the field, with null allowed, or ``None`` if there is no such field."""
        holder: Schema | None = envelope
        if self.parent is not None:
            parent = envelope.field(self.parent)
            holder = parent.schema if parent is not None and parent.schema.type is Type.STRUCT else None
        found = holder.field(self.field) if holder is not None else None
        found = found or envelope.field(self.field)
        return None if found is None else found.schema.replace(optional=True, default=None)

    def read(self, envelope: Mapping[str, Any]) -> Any:
        """The value of the field, null if it or what holds it is missing."""
        if self.parent is None:
            return envelope.get(self.field)
        holder = envelope.get(self.parent)
        if isinstance(holder, Mapping) and self.field in holder:
            return holder[self.field]
        return envelope.get(self.field)


def parse_envelope_field(text: str, prefix: str) -> EnvelopeField:
    """What ``op``, ``source.lsn`` or ``source.lsn:position`` means; a ``ValueError`` if it means nothing."""
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
    """Whether a value is a change event: by the name of its schema, or by its fields if it has none."""
    if schema is not None:
        return schema.name is not None and schema.name.endswith(".Envelope")
    return (
        isinstance(value, Mapping) and "op" in value and "source" in value and ("after" in value or "before" in value)
    )
