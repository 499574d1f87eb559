"""Events of MongoDB's own change streams, as the source connector publishes them."""

from __future__ import annotations

import logging
from typing import Any, Final

from connect.errors import DataError
from connectors.mongodb.sink.documents import Document, SinkDocument
from connectors.mongodb.sink.fields import equality, required_document
from connectors.mongodb.sink.operations import Operation

__all__ = ["handle"]

_log = logging.getLogger(__name__)
_UPDATE_FIELDS: Final = {"updatedFields", "removedFields", "truncatedArrays", "disambiguatedPaths"}


def handle(document: SinkDocument) -> Operation | None:
    """Return the operation that repeats a change; ``None`` for tombstones and changes that are not of documents."""
    event = document.value
    if not event:
        return None
    operation = event.get("operationType")
    match operation:
        case "insert" | "replace":
            full = _part(event, "fullDocument")
            return Operation.replace(_filter(event), full, upsert=True)
        case "update":
            return _update(event)
        case "delete":
            return Operation.delete(_filter(event))
        case str():
            _log.warning("Skipping an event with the operationType %s: it changes no document.", operation)
            return None
        case _:
            raise DataError("The value is not an event of a change stream: it has no operationType.")


def _update(event: Document) -> Operation:
    if isinstance(full := event.get("fullDocument"), dict):
        # Without upsert: the document may have been deleted since.
        return Operation.replace(_filter(event), full)
    return Operation.update(_filter(event), _changes(_part(event, "updateDescription")))


def _changes(description: Document) -> Document:
    if unknown := description.keys() - _UPDATE_FIELDS:
        raise DataError(f"The updateDescription has the unknown field {min(unknown)}: the change cannot be repeated.")
    if description.get("truncatedArrays"):
        raise DataError(
            "The updateDescription has truncatedArrays, which an update cannot repeat: set "
            "change.stream.full.document=updateLookup at the source."
        )
    changes: dict[str, Any] = {}
    if set_fields := required_document(description.get("updatedFields") or {}, "updatedFields"):
        changes["$set"] = set_fields
    if removed := description.get("removedFields"):
        changes["$unset"] = dict.fromkeys(removed, "")
    if not changes:
        raise DataError("The updateDescription changes nothing: it has neither updatedFields nor removedFields.")
    return changes


def _filter(event: Document) -> Document:
    return {name: equality(value) for name, value in _part(event, "documentKey").items()}


def _part(event: Document, name: str) -> Document:
    found = event.get(name)
    if not isinstance(found, dict) or not (found or name == "fullDocument"):
        raise DataError(f"The event of operation {event.get('operationType')} has no document {name}.")
    return found
