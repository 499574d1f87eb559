"""Post processors, which change the documents of a record before they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from bson.int64 import Int64

from connect.data import SinkRecord, TimestampType
from connectors.mongodb.classes import class_named
from connectors.mongodb.sink.config import MongoSinkConfig, renamings
from connectors.mongodb.sink.documents import SinkDocument
from connectors.mongodb.sink.fields import (
    Rename,
    projection,
    remove_nulls,
    rename_by_mapping,
    rename_by_regex,
    rename_fields,
)
from connectors.mongodb.sink.ids import id_strategy
from connectors.mongodb.sink.timeseries import time_converter

__all__ = ["PostProcessor", "post_processors"]

PostProcessor: TypeAlias = Callable[[SinkDocument, SinkRecord], None]

_ID_ADDER = "DocumentIdAdder"


def post_processors(config: MongoSinkConfig) -> list[PostProcessor]:
    """Return the configured processors in the order in which they are applied."""
    names = [class_named(name) for name in config.post_processor_chain if name.strip()]
    if _ID_ADDER not in names:
        names.insert(0, _ID_ADDER)
    return [*(made for name in names for made in _named(name, config)), *_last(config)]


def _named(name: str, config: MongoSinkConfig) -> Iterator[PostProcessor]:
    match name:
        case "DocumentIdAdder":
            yield _id_adder(config)
        case "KafkaMetaAdder":
            yield _add_metadata
        case "NullFieldValueRemover":
            yield _remove_nulls
        case "RenameByMapping":
            yield partial(_rename, rename_by_mapping(renamings(config.field_renamer_mapping)))
        case "RenameByRegExp":
            yield partial(_rename, rename_by_regex(renamings(config.field_renamer_regexp)))
        case _:
            yield from _projector(name, config)


def _last(config: MongoSinkConfig) -> Iterator[PostProcessor]:
    if (convert := time_converter(config)) is not None:

        def convert_time(document: SinkDocument, _: SinkRecord) -> None:
            if (value := document.value) is not None:
                convert(value)

        yield convert_time


def _id_adder(config: MongoSinkConfig) -> PostProcessor:
    strategy, overwrites = id_strategy(config), config.document_id_strategy_overwrite_existing

    def add(document: SinkDocument, record: SinkRecord) -> None:
        value = document.value
        if value is not None and (overwrites or "_id" not in value):
            value["_id"] = strategy(document, record)

    return add


def _projector(name: str, config: MongoSinkConfig) -> Iterator[PostProcessor]:
    """Yield the projector of a class such as AllowListKeyProjector."""
    is_key = "KeyProjector" in name
    kind = name.partition("KeyProjector" if is_key else "ValueProjector")[0].lower()
    text = config.key_projection_list if is_key else config.value_projection_list
    project = projection(kind, text, keeps_id=True)
    if project is None:
        return

    def apply(document: SinkDocument, _: SinkRecord) -> None:
        found = document.key_fields if is_key else document.value
        if found is not None:
            project(found)

    yield apply


def _rename(rename: Rename, document: SinkDocument, _: SinkRecord) -> None:
    if (key := document.key_fields) is not None:
        rename_fields(key, "key", rename)
    if (value := document.value) is not None:
        rename_fields(value, "value", rename)


def _remove_nulls(document: SinkDocument, _: SinkRecord) -> None:
    if (value := document.value) is not None:
        remove_nulls(value)


def _add_metadata(document: SinkDocument, record: SinkRecord) -> None:
    value = document.value
    if value is None:
        return
    value["topic-partition-offset"] = f"{record.topic}-{record.partition}-{record.offset}"
    if record.timestamp is not None and record.timestamp_type is not TimestampType.NO_TIMESTAMP_TYPE:
        value[record.timestamp_type.name] = Int64(record.timestamp)
