"""The states of connectors and tasks in the cluster's status topic.

Crash point: a state that was not acknowledged is lost with the worker. The worker that takes over writes the next one,
so the topic is outdated only for a moment. The states of a worker that was cut off from the brokers may arrive after
those of its successor, which then writes its own again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from connect.errors import DataError, RetriableError
from connect.internals.kafka.settings.client import ClientKind
from worker.config.worker import DistributedConfig
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.compacted import CompactedTopic, TopicRecord
from worker.kafka.topics.internal import ensure_internal_topic
from worker.stores.status import records
from worker.stores.status.store import Heard, State, Status, StatusStore
from worker.unit import Unit

__all__ = ["KafkaStatusStore", "StatusView"]

logger = logging.getLogger(__name__)

_PREFIX: Final = "status.storage."
_PURPOSE: Final = "connector and task statuses"
_START_SECONDS: Final = 120.0

# The states that a worker may write for units that already belong to another; all other states are of units that it
# runs.
_SAFELY: Final = frozenset((State.UNASSIGNED, State.FAILED))


@dataclass(slots=True)
class _Writing:
    """A worker's own writes of a key that it has not read back from the topic, and the last record read meanwhile."""

    under_way: int = 0
    newest: int = 0
    seen: records.StatusRecord | records.TopicUseRecord | None = None


class StatusView:
    """The known states: those written by this worker, at once, and those read from the topic. Used by one thread.

    While this worker's writes of a key are pending, the view shows the last of them. Once they have been read back, the
    last record of the key on the topic counts, no matter which worker wrote it.
    """

    def __init__(self, heard: Heard = StatusStore.heard) -> None:
        self._heard = heard
        self._statuses: dict[Unit, Status] = {}
        self._copy: Mapping[Unit, Status] | None = None
        self._topics: dict[str, set[str]] = {}
        self._writing: dict[bytes, _Writing] = {}

    def statuses(self) -> Mapping[Unit, Status]:
        """Return every status by unit: a mapping that does not change, and is the same one until a status does."""
        if self._copy is None:
            self._copy = dict(self._statuses)
        return self._copy

    def status(self, unit: Unit) -> Status | None:
        """Return the status of a unit, if there is one."""
        return self._statuses.get(unit)

    def topics(self, connector: str) -> list[str]:
        """Return the topics that a connector uses, in order."""
        return sorted(self._topics.get(connector, ()))

    def write(self, key: bytes, record: records.StatusRecord | records.TopicUseRecord) -> int:
        """Show a record that is being written, and return its number among the writes of its key."""
        self._show(record)
        writing = self._writing.setdefault(key, _Writing())
        writing.under_way += 1
        writing.newest += 1
        return writing.newest

    def read(self, key: bytes, record: records.StatusRecord | records.TopicUseRecord) -> None:
        """Apply a record read from the topic."""
        writing = self._writing.get(key)
        if writing is None:
            self._show(record)
        else:
            writing.seen = record

    def is_newest(self, key: bytes, number: int) -> bool:
        """Return whether nothing was written after this write of the key."""
        writing = self._writing.get(key)
        return writing is not None and writing.newest == number

    def written(self, key: bytes) -> None:
        """Note that a write of a key was read back, or given up."""
        writing = self._writing[key]
        writing.under_way -= 1
        if writing.under_way == 0:
            del self._writing[key]
            if writing.seen is not None:
                self._show(writing.seen)

    def _show(self, record: records.StatusRecord | records.TopicUseRecord) -> None:
        match record:
            case records.StatusRecord(unit, status):
                self._copy = None
                before = self._statuses.get(unit)
                if status is None:
                    self._statuses.pop(unit, None)
                else:
                    self._statuses[unit] = status
                self._heard(unit, before, status)
            case records.TopicUseRecord(connector, topic, True):
                self._topics.setdefault(connector, set()).add(topic)
            case records.TopicUseRecord(connector, topic, _):
                self._topics.get(connector, set()).discard(topic)


class KafkaStatusStore(StatusStore):
    """One worker's view of the status topic, which workers of Kafka Connect may share.

    ``props`` are the worker's properties with references resolved. ``post`` runs an action in the thread that owns the
    view, in order; records are applied there. Writes are asynchronous: the client library retries them, and a write
    that fails for a temporary reason is repeated unless there is a newer one for the same unit.
    """

    def __init__(
        self,
        worker_id: str,
        config: DistributedConfig,
        props: Mapping[str, str],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._worker_id = worker_id
        self._config = config
        self._props = props
        self._post = post
        self._arrived: SimpleQueue[TopicRecord] = SimpleQueue()
        self._topic = CompactedTopic(
            config.status_storage_topic,
            internal_properties(props, ClientKind.CONSUMER, "statuses"),
            internal_properties(props, ClientKind.PRODUCER, "statuses"),
            self._arrive,
        )
        # Everything below belongs to the thread of the view.
        self._view = StatusView(self._tell)
        self._said: dict[Unit, Status] = {}

    def start(self) -> None:
        """Create the topic if it is missing, and read all of it. Raises ``ConnectError``."""
        ensure_internal_topic(
            self._props,
            _PREFIX,
            partitions=self._config.status_storage_partitions,
            replication_factor=self._config.status_storage_replication_factor,
            purpose=_PURPOSE,
        )
        self._topic.start(_START_SECONDS)
        self._apply_arrived()

    @property
    def refusal(self) -> str | None:
        return self._topic.refusal

    def close(self) -> None:
        """Close the store after waiting a few seconds at most for pending writes."""
        self._topic.close()

    def put(self, unit: Unit, status: Status) -> None:
        """Store a status. UNASSIGNED and FAILED are dropped if a worker of a newer generation has written one."""
        if status.state in _SAFELY and not self._is_ours(unit, status):
            logger.debug("Status %s of %s is not written: a newer generation has taken it over", status.state, unit)
            return
        self._said[unit] = status
        if status.state is State.UNASSIGNED:
            del self._said[unit]
        self._write(records.status_key(unit), records.status_value(status), records.StatusRecord(unit, status))

    def remove(self, unit: Unit) -> None:
        self._said.pop(unit, None)
        self._write(records.status_key(unit), None, records.StatusRecord(unit, None))

    def statuses(self) -> Mapping[Unit, Status]:
        return self._view.statuses()

    def put_topics(self, unit: Unit, topics: Iterable[str]) -> None:
        known = set(self._view.topics(unit.connector))
        now = time.time_ns() // 1_000_000
        for topic in sorted(set(topics) - known):
            key = records.topic_use_key(unit.connector, topic)
            value = records.topic_use_value(unit, topic, now)
            self._write(key, value, records.TopicUseRecord(unit.connector, topic, True))

    def remove_topics(self, connector: str) -> None:
        for topic in self._view.topics(connector):
            key = records.topic_use_key(connector, topic)
            self._write(key, None, records.TopicUseRecord(connector, topic, False))

    def topics(self, connector: str) -> list[str]:
        return self._view.topics(connector)

    def _is_ours(self, unit: Unit, status: Status) -> bool:
        current = self._view.status(unit)
        return current is None or current.worker_id == self._worker_id or current.generation <= status.generation

    def _write(self, key: bytes, value: bytes | None, record: records.StatusRecord | records.TopicUseRecord) -> None:
        self._send(key, value, self._view.write(key, record))

    def _send(self, key: bytes, value: bytes | None, number: int) -> None:
        def written(outcome: Future[None]) -> None:
            self._post(partial(self._written, key, value, number, outcome.exception()))

        self._topic.write([(key, value)]).add_done_callback(written)

    def _written(self, key: bytes, value: bytes | None, number: int, error: BaseException | None) -> None:
        if isinstance(error, RetriableError) and self._view.is_newest(key, number):
            self._send(key, value, number)
            return
        if error is not None:
            logger.warning("Status %s could not be written: %s", key.decode("utf-8"), error)
        self._view.written(key)

    def _tell(self, unit: Unit, before: Status | None, after: Status | None) -> None:
        self.heard(unit, before, after)

    def _arrive(self, record: TopicRecord) -> None:
        self._arrived.put(record)
        self._post(self._apply_arrived)

    def _apply_arrived(self) -> None:
        while True:
            try:
                record = self._arrived.get_nowait()
            except Empty:
                return
            key = record.key or b""
            try:
                parsed = records.parse(key, record.value)
                self._view.read(key, parsed)
                if isinstance(parsed, records.StatusRecord):
                    self._answer(parsed.unit, parsed.status)
            except DataError as error:
                shown = key.decode("utf-8", "replace")
                logger.warning("Ignoring record %s of the status topic at offset %d: %s", shown, record.offset, error)

    def _answer(self, unit: Unit, heard: Status | None) -> None:
        """Repeat a status that a former owner has overwritten, and forget it once a newer owner has written one."""
        said = self._said.get(unit)
        if said is None or (heard is not None and heard.worker_id == self._worker_id):
            return
        if heard is not None and heard.generation < said.generation:
            logger.debug(
                "Status %s of %s is written again: %s has overwritten it with an older one",
                said.state,
                unit,
                heard.worker_id,
            )
            self.put(unit, said)
        else:
            del self._said[unit]
