"""The copy of existing documents, as events of inserts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from bson import decode
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.collection import Collection

from connect.internals.java.regex import regex_from_java
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.positions import CopyPosition, copy_offset

__all__ = ["Copied", "copied_events"]

_log = logging.getLogger(__name__)
_INTERNAL: Final = frozenset({"admin", "config", "local"})
_WITHOUT_ID_INDEX: Final = frozenset({"view", "timeseries"})


class Copied(NamedTuple):
    """An event of a copy, and the offset after it."""

    event: bytes
    offset: dict[str, str]


class _Namespace(NamedTuple):
    database: str
    collection: str
    is_ordered: bool
    """Whether there is an index by which documents are read in the order of their ids."""

    @property
    def name(self) -> str:
        return f"{self.database}.{self.collection}"


def copied_events(
    client: MongoClient[Any], config: MongoSourceConfig, token: str, after: CopyPosition | None
) -> Iterator[Copied]:
    """Yield the existing documents of all namespaces, in the order of their names, and within these of the ids.

    ``after`` is the last document that was published before; ``token`` is kept in the offsets. If the pipeline changes
    the order of documents, or where there is none, an interrupted copy of a collection begins anew.
    """
    for namespace in _namespaces(client, config):
        if after is not None and namespace.name < after.namespace:
            continue
        start = after if after is not None and namespace.name == after.namespace else None
        _log.info("Copying %s%s", namespace.name, " from where it was interrupted" if start else "")
        yield from _copied(client[namespace.database][namespace.collection], namespace, config, token, start)


def _copied(
    collection: Collection[Any],
    namespace: _Namespace,
    config: MongoSourceConfig,
    token: str,
    start: CopyPosition | None,
) -> Iterator[Copied]:
    is_resumable = namespace.is_ordered and config.copies_in_order
    begin: list[dict[str, Any]] = []
    if is_resumable:
        if start is not None:
            # Compared so, ids of all types have one order.
            begin.append({"$match": {"$expr": {"$gt": ["$_id", {"$literal": start.identity}]}}})
        begin.append({"$sort": {"_id": 1}})
    options: dict[str, Any] = {"allowDiskUse": config.copies_with_disk}
    if config.batch_size:
        options["batchSize"] = config.batch_size
    beginning = {"_id": token, "copy": "true"}
    stages = [*begin, *config.copy_stages, _as_event(namespace), *config.stages]
    raw = collection.with_options(codec_options=collection.codec_options.with_options(document_class=RawBSONDocument))
    with raw.aggregate(stages, **options) as cursor:
        for event in cursor:
            identity = event.get("_id")
            offset = beginning
            if is_resumable and isinstance(identity, RawBSONDocument) and "_id" in identity:
                offset = copy_offset(token, namespace.name, _plain(identity["_id"]))
            yield Copied(event.raw, offset)


def _plain(identity: Any) -> Any:
    return decode(identity.raw) if isinstance(identity, RawBSONDocument) else identity


def _as_event(namespace: _Namespace) -> dict[str, Any]:
    return {
        "$replaceRoot": {
            "newRoot": {
                "_id": {"_id": "$_id", "copyingData": True},
                "operationType": "insert",
                "ns": {"db": {"$literal": namespace.database}, "coll": {"$literal": namespace.collection}},
                "documentKey": {"_id": "$_id"},
                "fullDocument": "$$ROOT",
            }
        }
    }


def _namespaces(client: MongoClient[Any], config: MongoSourceConfig) -> list[_Namespace]:
    pattern = regex_from_java(config.copy_regex) if config.copy_regex else None
    databases = [config.database] if config.database else sorted(set(client.list_database_names()) - _INTERNAL)
    found = []
    for database in databases:
        for each in client[database].list_collections():
            name = each["name"]
            is_wanted = name == config.collection if config.collection else not name.startswith("system.")
            if is_wanted:
                found.append(_Namespace(database, name, each.get("type") not in _WITHOUT_ID_INDEX))
    wanted = [each for each in found if pattern is None or pattern.search(each.name)]
    return sorted(wanted, key=lambda each: each.name)
