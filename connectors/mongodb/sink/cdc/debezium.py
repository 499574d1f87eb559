"""Events of Debezium: rows of relational databases, and documents of MongoDB."""

from __future__ import annotations

import re
from typing import Any, Final

from bson.objectid import ObjectId

from connect.data import SinkRecord
from connect.errors import DataError
from connect.kits.mongodb.extended_json import parse_document
from connectors.mongodb.sink.documents import Document, SinkDocument
from connectors.mongodb.sink.fields import equality
from connectors.mongodb.sink.namespaces import Namespace, NamespaceMapper
from connectors.mongodb.sink.operations import Operation

__all__ = ["collection_mapper", "handle", "handle_change_stream", "handle_mongodb", "handle_rows"]

_SOURCE_FIELD: Final = re.compile(r"\$\{source\.([^}]+)\}")


def collection_mapper(database: str, name_format: str) -> NamespaceMapper:
    """Return what names the collection of an event, by its topic and the fields of its source."""

    def mapped(document: SinkDocument, record: SinkRecord) -> Namespace:
        def field(match: re.Match[str]) -> str:
            source = (document.value or {}).get("source")
            found = source.get(match[1]) if isinstance(source, dict) else None
            if not isinstance(found, str):
                raise DataError(f"The event has no text source.{match[1]}, which collection.name.format names.")
            return found

        # A tombstone has no source, and changes nothing.
        topic = record.topic.replace(".", "_")
        name = name_format.replace("${topic}", topic)
        return Namespace(database, _SOURCE_FIELD.sub(field, name) if document.has_value else topic)

    return mapped


def handle(document: SinkDocument) -> Operation | None:
    """Return what a change means, of a row or of a document, which the event's source tells apart."""
    return handle_change_stream(document) if _is_of_mongodb(document.value or {}) else handle_rows(document)


def _is_of_mongodb(event: Document) -> bool:
    source = event.get("source")
    if isinstance(source, dict) and isinstance(connector := source.get("connector"), str):
        return connector == "mongodb"
    return isinstance(event.get("after"), str) or isinstance(event.get("updateDescription"), dict)


def handle_rows(document: SinkDocument) -> Operation | None:
    """Return what a change of a row means: the document whose ``_id`` is the row's key is replaced or deleted."""
    event = document.value
    if not event or ("ddl" in event and "op" not in event):
        return None
    key = document.key or {}
    match _operation(event):
        case "c" | "r":
            condition = {"_id": dict(key)} if key else {"_id": ObjectId()}
            return _replace_row(condition, key, event)
        case "u":
            return _replace_row(_row_filter(key, event), key, event)
        case "d":
            return Operation.delete(_escaped(_row_filter(key, event)))
        case other:
            raise DataError(f"The operation {other} of the event is none of a row: c, r, u or d.")


def _row_filter(key: Document, event: Document) -> Document:
    if key:
        return {"_id": dict(key)}
    before = event.get("before")
    if not isinstance(before, dict) or not before:
        raise DataError("The record has no key, and the event no row before the change: the document is not known.")
    return before


def _replace_row(condition: Document, key: Document, event: Document) -> Operation:
    after = event.get("after")
    if not isinstance(after, dict) or not after:
        raise DataError("The event has no row after the change (field after).")
    made: dict[str, Any] = {"_id": condition["_id"]} if "_id" in condition else {}
    made |= {name: value for name, value in after.items() if name not in key}
    return Operation.replace(_escaped(condition), made, upsert=True)


def handle_change_stream(document: SinkDocument) -> Operation | None:
    """Return what a change of a document means, in the events of Debezium since version 1.8."""
    event = document.value
    if not event:
        return None
    condition = _document_filter(document)
    match _operation(event):
        case "u" if event.get("after") is None and isinstance(event.get("updateDescription"), dict):
            return Operation.update(condition, _described(event["updateDescription"]))
        case "c" | "r" | "u":
            return Operation.replace(condition, _json(event, "after"), upsert=True)
        case "d":
            return Operation.delete(condition)
        case other:
            raise DataError(f"The operation {other} of the event is none of a document: c, r, u or d.")


def _described(description: Document) -> Document:
    """Return the update of an event that tells the changed fields alone."""
    if description.get("truncatedArrays"):
        raise DataError(
            "The event has truncatedArrays, which an update cannot repeat: set capture.mode=change_streams_update_full "
            "at the source, so that updates have the whole document."
        )
    changes: Document = {}
    if isinstance(text := description.get("updatedFields"), str) and (fields := parse_document(text)):
        changes["$set"] = fields
    if removed := description.get("removedFields"):
        changes["$unset"] = dict.fromkeys(removed, "")
    if not changes:
        raise DataError("The updateDescription changes nothing: it has neither updatedFields nor removedFields.")
    return changes


def handle_mongodb(document: SinkDocument) -> Operation | None:
    """Return what a change of a document means, in the older events as well, whose updates have a ``patch``."""
    event = document.value
    # A tombstone follows each delete: it has a key alone.
    if not event:
        return None
    match _operation(event):
        case "c" | "r":
            made = _json(event, "after")
            return Operation.replace({"_id": equality(made.get("_id"))}, made, upsert=True)
        case "u" if isinstance(event.get("patch"), str):
            return _patch(document, _json(event, "patch"))
        case "u":
            return Operation.replace(_document_filter(document), _json(event, "after"), upsert=True)
        case "d":
            return Operation.delete(_document_filter(document))
        case other:
            raise DataError(f"The operation {other} of the event is none of a document: c, r, u or d.")


def _patch(document: SinkDocument, patch: Document) -> Operation:
    patch.pop("$v", None)
    if "_id" in patch:
        return Operation.replace({"_id": equality(patch["_id"])}, patch, upsert=True)
    return Operation.update(_document_filter(document), patch)


def _document_filter(document: SinkDocument) -> Document:
    key = document.key
    identity = key.get("id") if key is not None else None
    if not isinstance(identity, str):
        raise DataError("The key has no text id, which holds the _id of the document as JSON.")
    return {"_id": equality(parse_document(f'{{"_id": {identity}}}')["_id"])}


def _json(event: Document, name: str) -> Document:
    text = event.get(name)
    if not isinstance(text, str):
        advice = (
            ": set capture.mode=change_streams_update_full at the source, so that updates have the whole document"
            if name == "after"
            else ""
        )
        raise DataError(f"The event has no document as text in its field {name}{advice}.")
    return parse_document(text)


def _operation(event: Document) -> Any:
    if "op" not in event:
        raise DataError("The value is not an event of Debezium: it has no field op.")
    return event["op"]


def _escaped(condition: Document) -> Document:
    return {name: equality(value) for name, value in condition.items()}
