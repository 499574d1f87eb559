"""Versions of configurations in a separate topic.

The topic is compacted: the key of a version is its connector and its place in a ring of ``MOST_VERSIONS``, so each new
version replaces the oldest, and the topic does not grow.

Crash point: if a leader is killed before it writes a version, the next leader writes it, which has seen the change or
sees its result. Two leaders that write the same version write the same record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from connect.errors import DataError
from connect.internals.kafka.settings.client import ClientKind
from worker.config.worker import DistributedConfig
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.internal import ensure_internal_topic
from worker.kafka.topics.on_demand_topic import OnDemandTopic
from worker.stores.java_json import dump
from worker.stores.versions.version import MOST_VERSIONS, Version, VersionStore, document, parse

__all__ = ["KafkaVersionStore"]

logger = logging.getLogger(__name__)

_PREFIX: Final = "config.history."
_PURPOSE: Final = "the history of connector configurations"


class KafkaVersionStore(VersionStore):
    """Stores versions in ``config.history.topic``. ``props`` are the worker's properties with references resolved.

    The topic is created before the first write. It is read from its beginning on request, so that workers need not keep
    versions in memory.
    """

    def __init__(self, config: DistributedConfig, props: Mapping[str, str]) -> None:
        named = {**props, f"{_PREFIX}topic": config.history_topic}
        factor = config.config_storage_replication_factor
        self._name = config.history_topic
        self._topic = OnDemandTopic(
            self._name,
            internal_properties(props, ClientKind.CONSUMER, "history"),
            internal_properties(props, ClientKind.PRODUCER, "history"),
            lambda: ensure_internal_topic(named, _PREFIX, partitions=1, replication_factor=factor, purpose=_PURPOSE),
        )

    def latest(self) -> dict[str, Version]:
        found: dict[str, Version] = {}
        for version in self._read():
            before = found.get(version.seen.connector)
            if before is None or before.number <= version.number:
                found[version.seen.connector] = version
        return found

    def versions(self, connector: str) -> list[Version]:
        found = {version.number: version for version in self._read(connector)}
        return [found[number] for number in sorted(found)][-MOST_VERSIONS:]

    def append(self, versions: Sequence[Version], forgotten: Sequence[Version]) -> None:
        records: list[tuple[bytes, bytes | None]] = [(_key(item), dump(document(item))) for item in versions]
        for last in forgotten:
            numbers = range(max(1, last.number - MOST_VERSIONS + 1), last.number + 1)
            records += [(_key(replace(last, number=number)), None) for number in numbers]
        self._topic.write(records)

    def close(self) -> None:
        self._topic.close()

    def _read(self, connector: str | None = None) -> Iterator[Version]:
        latest: dict[bytes | None, bytes] = {}
        for key, value in self._topic.read():
            if connector is not None and _connector(key) != connector:
                continue
            if value is None:
                latest.pop(key, None)
            else:
                latest[key] = value
        for value in latest.values():
            try:
                yield parse(value)
            except DataError as error:
                logger.warning("Ignoring a record of the topic %s: %s", self._name, error)


def _key(version: Version) -> bytes:
    return dump([version.seen.connector, version.number % MOST_VERSIONS])


def _connector(key: bytes | None) -> Any:
    try:
        found = orjson.loads(key or b"")
    except ValueError:
        return None
    return found[0] if isinstance(found, list) and found else None
