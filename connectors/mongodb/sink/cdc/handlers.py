"""The handlers by the names of Java's classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from connectors.mongodb.classes import class_named
from connectors.mongodb.sink.cdc import change_streams, debezium, qlik
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.documents import SinkDocument
from connectors.mongodb.sink.fields import remove_nulls
from connectors.mongodb.sink.operations import Action, Operation

__all__ = ["CdcHandler", "cdc_handler"]

CdcHandler: TypeAlias = Callable[[SinkDocument], Operation | None]
"""Returns what to do for a change event; ``None`` for nothing."""

_BY_CLASS: Final[Mapping[str, CdcHandler]] = {
    "cdc.mongodb.ChangeStreamHandler": change_streams.handle,
    "cdc.debezium.mongodb.ChangeStreamHandler": debezium.handle_change_stream,
    "cdc.debezium.mongodb.MongoDbHandler": debezium.handle_mongodb,
}
_BY_NAME: Final[Mapping[str, CdcHandler]] = {
    "ChangeStreamHandler": change_streams.handle,
    "MongoDbHandler": debezium.handle_mongodb,
    "MysqlHandler": debezium.handle_rows,
    "PostgresHandler": debezium.handle_rows,
    "AttunityRdbmsHandler": qlik.handle,
}


def cdc_handler(config: MongoSinkConfig) -> CdcHandler | None:
    """Return the configured handler; ``None`` if there is none."""
    name = config.change_data_capture_handler.strip()
    if not name:
        return None
    handler = _named(name)
    if not config.change_data_capture_handler_remove_null_values:
        return handler

    def without_nulls(document: SinkDocument) -> Operation | None:
        made = handler(document)
        if made is not None and made.action is Action.REPLACE:
            remove_nulls(made.change)
        elif made is not None and made.action is Action.UPDATE:
            remove_nulls(made.change.get("$set", {}))
        return made

    return without_nulls


def _named(name: str) -> CdcHandler:
    for ending, handler in _BY_CLASS.items():
        if name.endswith(f".{ending}"):
            return handler
    short = class_named(name)
    if short == "RdbmsHandler":
        return qlik.handle if "qlik" in name else debezium.handle_rows
    return _BY_NAME[short]
