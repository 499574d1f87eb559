"""Source offsets in the cluster's offsets topic.

Crash point: offsets take effect when the topic has acknowledged them. If the worker is killed before that, the records
since the previous offsets are sent again (invariant I3). Some offsets of a commit may have been written and others not;
each is valid on its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from connect.errors import DataError
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from worker.config.worker import DistributedConfig
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.compacted import CompactedTopic, TopicRecord
from worker.kafka.topics.compacted_clients import WriteLimit
from worker.kafka.topics.internal import ensure_internal_topic
from worker.stores.offset.store import OffsetKey, OffsetStore

__all__ = ["KafkaOffsetStore", "OffsetView", "TopicOffsetStore", "ordered_key"]

logger = logging.getLogger(__name__)

_PREFIX: Final = "offset.storage."
_PURPOSE: Final = "source connector offsets"
_START_SECONDS: Final = 120.0
_ANSWER_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Kept:
    value: bytes
    timestamp: int


class OffsetView:
    """Offsets by source partition, regardless of the order of a partition's members in its key.

    Java writes them in the order of its maps. Keys that differ only in that order are the same partition: the newest
    value counts, and a change is written under each key, so that no old value returns when another key is compacted
    away.
    """

    def __init__(self) -> None:
        self._forms: dict[bytes, dict[OffsetKey, _Kept]] = {}

    def read(self, record: TopicRecord) -> None:
        """Apply a record. Raises :class:`~connect.errors.DataError` if its key is not that of a source partition."""
        key = record.key or b""
        partition = ordered_key(key)
        if record.value is not None:
            self._forms.setdefault(partition, {})[key] = _Kept(record.value, record.timestamp)
            return
        forms = self._forms.get(partition, {})
        forms.pop(key, None)
        if not forms:
            self._forms.pop(partition, None)

    def get(self, key: OffsetKey) -> bytes | None:
        """Return the newest value of the partition identified by ``key``."""
        newest = self._newest(ordered_key(key))
        return None if newest is None else newest[1].value

    def forms(self, key: OffsetKey) -> list[OffsetKey]:
        """Return the keys under which a value of this partition must be written."""
        return list(self._forms.get(ordered_key(key), ())) or [key]

    def items(self) -> dict[OffsetKey, bytes]:
        """Return the newest value of every partition, by its key on the topic."""
        newest = (self._newest(partition) for partition in self._forms)
        return {found[0]: found[1].value for found in newest if found is not None}

    def _newest(self, partition: bytes) -> tuple[OffsetKey, _Kept] | None:
        forms = self._forms.get(partition, {})
        return max(forms.items(), key=lambda form: form[1].timestamp, default=None)


class TopicOffsetStore(OffsetStore):
    """Offsets in one compacted topic. Used by one thread.

    ``get`` and ``items`` first read to the topic's end, because others write to it too; ``put`` returns when the topic
    has acknowledged all records. All three raise :class:`~connect.errors.ConnectError` after 30 s.
    """

    def __init__(
        self,
        topic: str,
        consumer: ClientProperties,
        producer: ClientProperties,
        limit: WriteLimit | None = None,
    ) -> None:
        self._topic = CompactedTopic(topic, consumer, producer, self._read, limit)
        self._name = topic
        self._lock = threading.Lock()  # shared by the topic's thread, which fills the view, and the callers' thread
        self._view = OffsetView()

    def start(self) -> None:
        """Read everything committed so far; later reads wait for transactions that are open then."""
        self._topic.start(_START_SECONDS, awaits_transactions=False)

    @property
    def refusal(self) -> str | None:
        """Why the topic cannot be used. May be called by any thread."""
        return self._topic.refusal

    def close(self) -> None:
        """Close the clients of the topic."""
        self._topic.close()

    def get(self, keys: Sequence[OffsetKey]) -> list[bytes | None]:
        self._topic.read_to_end(_ANSWER_SECONDS).result()
        with self._lock:
            return [self._view.get(key) for key in keys]

    def forms(self, values: Mapping[OffsetKey, bytes | None]) -> list[tuple[OffsetKey, bytes | None]]:
        """Return the records to write for these values, one for each form of a key that was read from the topic."""
        with self._lock:
            return [(form, value) for key, value in values.items() for form in self._view.forms(key)]

    def put(self, values: Mapping[OffsetKey, bytes | None]) -> None:
        if pairs := self.forms(values):
            self._topic.send_all(pairs, _ANSWER_SECONDS).result()

    def items(self) -> Mapping[OffsetKey, bytes]:
        self._topic.read_to_end(_ANSWER_SECONDS).result()
        with self._lock:
            return self._view.items()

    def _read(self, record: TopicRecord) -> None:
        try:
            with self._lock:
                self._view.read(record)
        except DataError as error:
            logger.warning(
                "Ignoring a record of topic '%s' in partition %d at offset %d: %s",
                self._name,
                record.partition,
                record.offset,
                error,
            )


class KafkaOffsetStore(TopicOffsetStore):
    """The worker's own offsets topic, which workers of Kafka Connect may share.

    ``props`` are the worker's properties with references resolved. A write that exceeds the ``limit`` fails and is not
    made later: by then the partition may belong to another worker, or its offset may have been altered.
    """

    def __init__(self, config: DistributedConfig, props: Mapping[str, str], limit: WriteLimit | None = None) -> None:
        committed = config.exactly_once_source_support.lower() == "enabled"
        isolation = {"isolation.level": "read_committed"} if committed else {}
        super().__init__(
            config.offset_storage_topic,
            internal_properties(props, ClientKind.CONSUMER, "offsets", isolation),
            internal_properties(props, ClientKind.PRODUCER, "offsets"),
            limit,
        )
        self._config = config
        self._props = props

    def start(self) -> None:
        """Create the topic if it is missing, and read all of it. Raises ``ConnectError``."""
        ensure_internal_topic(
            self._props,
            _PREFIX,
            partitions=self._config.offset_storage_partitions,
            replication_factor=self._config.offset_storage_replication_factor,
            purpose=_PURPOSE,
        )
        super().start()


def ordered_key(key: OffsetKey) -> bytes:
    """Return the key with the members of its partition sorted: the same for every order that Java may write."""
    try:
        document = orjson.loads(key)
    except ValueError as error:
        raise DataError(f"its key is not JSON ({error})") from None
    if not (isinstance(document, list) and len(document) == 2 and isinstance(document[0], str)):
        raise DataError("its key is not a connector and a source partition")
    if not (document[1] is None or isinstance(document[1], dict)):
        raise DataError("its source partition is not an object")
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
