"""Schemas of the vectors of the data model that are not well formed, which only these suites have."""

from __future__ import annotations

from typing import Any

from connect.data import Field, Schema, Type
from equipment.vectors import schema_of


def schema_or_none(document: dict[str, Any] | None) -> Schema | None:
    """The schema a document describes; ``None`` where the elements of an array or a map have none.

    Kafka Connect has schemas of arrays that do not say of what. Here such a value has no schema, which says the same.
    """
    return None if document is None or _lacks_elements(document) else schema_of(document)


def _lacks_elements(document: dict[str, Any]) -> bool:
    parts = [document[name] for name in ("items", "keys", "values") if name in document]
    return any(part is None or _lacks_elements(part) for part in parts)


def built(document: dict[str, Any]) -> Schema:
    """The schema made as the document says, with its duplicate fields or without its element."""
    if document["type"] == "array" and "items" not in document:
        return Schema(Type.ARRAY)
    if document["type"] != "struct":
        schema = schema_of(document)
        assert schema is not None
        return schema
    members = [(member["name"], built(member["schema"])) for member in document["fields"]]
    return Schema.struct(Field(name, schema, place) for place, (name, schema) in enumerate(members))
