"""Write model strategies: what is asked of the server for a document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from connect.errors import DataError
from connectors.mongodb.classes import class_named
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.documents import Document, SinkDocument
from connectors.mongodb.sink.fields import dotted, equality, required_document
from connectors.mongodb.sink.ids import partial_key
from connectors.mongodb.sink.operations import Operation

__all__ = ["WriteModel", "delete_model", "write_model"]

WriteModel: TypeAlias = Callable[[SinkDocument], Operation]


def write_model(config: MongoSinkConfig) -> WriteModel:
    """Return the write model of records with values."""
    name = class_named(config.writemodel_strategy)
    if name == "DefaultWriteModelStrategy":
        name = "InsertOneDefaultStrategy" if config.timeseries_timefield else "ReplaceOneDefaultStrategy"
    if (simple := _SIMPLE.get(name)) is not None:
        return simple
    by_key, is_partial = _BY_BUSINESS_KEY[name], _is_partial(config)
    return lambda document: by_key(document.required_value(), is_partial=is_partial)


def delete_model(config: MongoSinkConfig) -> WriteModel:
    """Return the write model of records without values."""
    match class_named(config.delete_writemodel_strategy):
        case "DeleteOneBusinessKeyStrategy":
            is_partial = _is_partial(config)
            return lambda document: _delete_by_business_key(document.required_value(), is_partial=is_partial)
        case "DeleteOneTombstoneBusinessKeyStrategy":
            make = partial_key(config)
            return lambda document: Operation.delete(_filter(make(document), is_partial=True))
        case _:
            return _delete_by_key


def _is_partial(config: MongoSinkConfig) -> bool:
    """Return whether the business key is a projection, whose fields are compared one by one."""
    return class_named(config.document_id_strategy) in ("PartialKeyStrategy", "PartialValueStrategy")


def _insert(document: SinkDocument) -> Operation:
    return Operation.insert(document.required_value())


def _replace(document: SinkDocument) -> Operation:
    value = document.required_value()
    return Operation.replace({"_id": equality(_id_of(value))}, value, upsert=True)


def _replace_by_business_key(value: Document, *, is_partial: bool) -> Operation:
    condition = _business_key(value, is_partial=is_partial)
    return Operation.replace(condition, _without_id(value), upsert=True)


def _update(document: SinkDocument) -> Operation:
    value = document.required_value()
    return Operation.update({"_id": equality(_id_of(value))}, _set(_without_id(value)), upsert=True)


def _update_timestamps(document: SinkDocument) -> Operation:
    value = document.required_value()
    return Operation.update({"_id": equality(_id_of(value))}, _stamped(_without_id(value)), upsert=True)


def _update_by_business_key(value: Document, *, is_partial: bool) -> Operation:
    condition = _business_key(value, is_partial=is_partial)
    return Operation.update(condition, _stamped(_without_id(value)), upsert=True)


def _delete_by_key(document: SinkDocument) -> Operation:
    key = document.key
    if key is None:
        raise DataError("The record has no key, and the document to delete is found by it.")
    if "_id" in key:
        return Operation.delete({name: equality(value) for name, value in key.items()})
    return Operation.delete({"_id": equality(key)})


def _delete_by_business_key(value: Document, *, is_partial: bool) -> Operation:
    return Operation.delete(_business_key(value, is_partial=is_partial))


def _set(fields: Document) -> Document:
    """Return the update that sets fields; one without fields only adds the document if it is missing."""
    return {"$set": fields} if fields else {"$setOnInsert": {}}


def _stamped(fields: Document) -> Document:
    now = dt.datetime.now(dt.UTC)
    return {"$set": {**fields, "_modifiedTS": now}, "$setOnInsert": {"_insertedTS": now}}


def _id_of(value: Document) -> Any:
    if "_id" not in value:
        raise DataError("The document has no _id: do not remove it by a projection or a new name.")
    return value["_id"]


def _without_id(value: Document) -> Document:
    return {name: field for name, field in value.items() if name != "_id"}


def _business_key(value: Document, *, is_partial: bool) -> Document:
    key = required_document(_id_of(value), "The _id, which is the business key of this write model,")
    return _filter(key, is_partial=is_partial)


def _filter(key: Document, *, is_partial: bool) -> Document:
    """Return the condition that a document has the fields of a business key.

    An empty key would be the condition that every document fulfils.
    """
    if not key:
        raise DataError("The business key has no fields: the record lacks all those of the projection.")
    fields = dotted(key) if is_partial else key.items()
    return {name: equality(value) for name, value in fields}


_SIMPLE: Final[Mapping[str, WriteModel]] = {
    "InsertOneDefaultStrategy": _insert,
    "ReplaceOneDefaultStrategy": _replace,
    "UpdateOneDefaultStrategy": _update,
    "UpdateOneTimestampsStrategy": _update_timestamps,
    "DeleteOneDefaultStrategy": _delete_by_key,
}
_BY_BUSINESS_KEY: Final[Mapping[str, Callable[..., Operation]]] = {
    "ReplaceOneBusinessKeyStrategy": _replace_by_business_key,
    "UpdateOneBusinessKeyTimestampStrategy": _update_by_business_key,
    "DeleteOneBusinessKeyStrategy": _delete_by_business_key,
}
