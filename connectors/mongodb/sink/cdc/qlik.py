"""Events of Qlik Replicate (once Attunity), for rows of relational databases."""

from __future__ import annotations

from typing import Any, Final

from bson.objectid import ObjectId

from connect.errors import DataError
from connectors.mongodb.sink.documents import Document, SinkDocument
from connectors.mongodb.sink.fields import equality, required_document
from connectors.mongodb.sink.operations import Operation

__all__ = ["handle"]

_MISSING: Final = object()


def handle(document: SinkDocument) -> Operation | None:
    """Return what a change of a row means; ``None`` for a tombstone."""
    event = document.value
    if not event:
        return None
    message = _inner(event, "message")
    key = document.key or {}
    match _operation(message):
        case "INSERT" | "REFRESH" | "READ":
            return _insert(key, message)
        case "UPDATE":
            return _update(key, message)
        case "DELETE":
            return Operation.delete(_filter(key, _before_delete(message)))
        case other:
            raise DataError(f"The operation {other} of the event is none of INSERT, REFRESH, READ, UPDATE, DELETE.")


def _operation(message: Document) -> Any:
    headers = _inner(message, "headers")
    operation = headers.get("operation", headers.get("headers_operation"))
    if not isinstance(operation, str):
        raise DataError("The value is not an event of Qlik Replicate: it has no text headers.operation.")
    return operation.upper()


def _insert(key: Document, message: Document) -> Operation:
    identity: Any = dict(key) if key else ObjectId()
    return Operation.replace({"_id": equality(identity)}, {"_id": identity, **_inner(message, "data")}, upsert=True)


def _update(key: Document, message: Document) -> Operation | None:
    before = _inner(message, "beforeData")
    after = _inner(message, "data")
    changes = {name: value for name, value in after.items() if before.get(name, _MISSING) != value}
    return Operation.update(_filter(key, before), {"$set": changes}) if changes else None


def _before_delete(message: Document) -> Document:
    data = _inner(message, "data", may_be_null=True)
    return _inner(data, "beforeData", may_be_null=True)


def _filter(key: Document, row: Document) -> Document:
    if key:
        return {"_id": equality(dict(key))}
    if not row:
        raise DataError("The record has no key, and the event no row before the change: the document is not known.")
    return {name: equality(value) for name, value in row.items()}


def _inner(document: Document, name: str, *, may_be_null: bool = False) -> Document:
    """Return a document within another, or that one if it has no such field."""
    if name not in document or (may_be_null and document[name] is None):
        return document
    return required_document(document[name], f"The field {name} of the event")
