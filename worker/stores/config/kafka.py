"""Connectors, task configs and target states in the cluster's config topic.

Crash point: a change is a few records. If the worker is killed between them, a connector has its new target state and
its old configuration, or task records without a commit, which are ignored. Kafka Connect leaves the same state, and the
next change repairs it. With exactly-once support, the records of a change are one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.kafka.settings.client import ClientKind
from worker.config.worker import DistributedConfig
from worker.errors import BadRequestError, FencedError, UnavailableError
from worker.kafka.clients.fencing_producer import FencingProducer
from worker.kafka.clients.roles import internal_properties
from worker.kafka.topics.compacted import CompactedTopic, TopicRecord
from worker.kafka.topics.compacted_clients import WriteLimit, is_too_large
from worker.kafka.topics.internal import ensure_internal_topic
from worker.stores.config import records
from worker.stores.config.state import ConfigState
from worker.stores.config.store import (
    ConfigChange,
    ConfigSnapshot,
    ConfigStore,
    ConnectorEntry,
    SessionKey,
    TargetState,
    WritesLost,
)

__all__ = ["KafkaConfigStore"]

logger = logging.getLogger(__name__)

_PREFIX: Final = "config.storage."
_PURPOSE: Final = "connector configurations"
_START_SECONDS: Final = 120.0
_WRITE_SECONDS: Final = 30.0

Post = Callable[[Callable[[], None]], None]
_KeyAndValue = tuple[bytes, bytes | None]


class KafkaConfigStore(ConfigStore):
    """One worker's view of the config topic, which workers of Kafka Connect may share.

    ``props`` are the worker's properties with references resolved. ``post`` runs an action in the thread that owns the
    view, in order; records are applied and futures completed there. Nothing in that thread may wait for a future of
    this store. Every worker reads; only the leader writes, except for logger levels. A future that takes longer than 30
    s fails. A write that could not be made within the ``limit`` is retried until then, but not once another worker may
    lead.
    """

    def __init__(
        self, config: DistributedConfig, props: Mapping[str, str], post: Post, limit: WriteLimit | None = None
    ) -> None:
        self._config = config
        self._props = props
        self._post = post
        self._arrived: SimpleQueue[TopicRecord] = SimpleQueue()
        support = config.exactly_once_source_support.lower()
        isolation = {"isolation.level": "read_committed"} if support == "enabled" else {}
        producer = internal_properties(props, ClientKind.PRODUCER, "configs")
        self._topic = CompactedTopic(
            config.config_storage_topic,
            internal_properties(props, ClientKind.CONSUMER, "configs", isolation),
            producer,
            self._arrive,
            limit,
        )
        self._limit = limit
        self._leader: FencingProducer | None = None
        if support != "disabled":
            self._leader = FencingProducer(
                config.config_storage_topic,
                internal_properties(props, ClientKind.PRODUCER, "leader"),
                f"connect-cluster-{config.group_id}",
                _WRITE_SECONDS,
                lambda: post(self._lose_writes),
            )
        # Everything below belongs to the thread of the view.
        self._given_up = 0
        self._state = ConfigState(fences=support == "enabled")
        self._offset = -1
        self._listener: Callable[[ConfigChange], None] | None = None
        self._known_inconsistent: frozenset[str] = frozenset()

    def start(self, listener: Callable[[ConfigChange], None]) -> None:
        described = ensure_internal_topic(
            self._props,
            _PREFIX,
            partitions=1,
            replication_factor=self._config.config_storage_replication_factor,
            purpose=_PURPOSE,
        )
        if described.partitions > 1:
            raise ConfigRuleError(
                f"Topic '{described.name}' supplied via the 'config.storage.topic' property is required to have a "
                f"single partition in order to guarantee consistency of {_PURPOSE}, but found {described.partitions} "
                "partitions. Name another topic, or one that does not exist yet: it is then created correctly.",
                "config.storage.topic",
            )
        # A transaction that the former leader left open is ended by the next leader before it reads on.
        self._topic.start(_START_SECONDS, awaits_transactions=False)
        self._apply_arrived()
        self._note_inconsistent()
        self._listener = listener
        if self._leader is not None:
            self._leader.start()

    @property
    def refusal(self) -> str | None:
        return self._topic.refusal

    def close(self) -> None:
        if self._leader is not None:
            self._leader.close()
        self._topic.close()

    def connectors(self) -> Mapping[str, ConnectorEntry]:
        return self._state.connectors

    def snapshot(self) -> ConfigSnapshot:
        return ConfigSnapshot(self._offset, self._state.tasks)

    def session_key(self) -> SessionKey | None:
        return self._state.session_key

    def fenced_tasks(self, name: str) -> int | None:
        return self._state.fenced_tasks(name)

    def pending_fencing(self, name: str) -> bool:
        return self._state.pending_fencing(name)

    def unfenced_tasks(self, name: str) -> frozenset[int] | None:
        return self._state.unfenced_tasks(name)

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target: TargetState | None,
        drained: int | None = None,
        plugin_type: str | None = None,
        author: str | None = None,
    ) -> Future[None]:
        first = [] if target is None else [records.target_state_record(name, target, drained)]
        return self._write_as_leader([*first, records.connector_record(name, config, plugin_type, author)])

    def remove_connector(self, name: str) -> Future[None]:
        return self._write_as_leader(records.removal_records(name))

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> Future[None]:
        return self._write_as_leader(records.task_records(name, configs))

    def put_target_state(self, name: str, target: TargetState, drained: int | None = None) -> Future[None]:
        return self._write_as_leader([records.target_state_record(name, target, drained)])

    def put_restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> Future[None]:
        record = records.restart_record(name, include_tasks=include_tasks, only_failed=only_failed)
        return self._write_as_leader([record])

    def put_logger_level(self, namespace: str, level: str) -> Future[None]:
        return self._write([records.logger_level_record(namespace, level)])

    def put_session_key(self, key: SessionKey) -> Future[None]:
        return self._write_as_leader([records.session_key_record(key)])

    def put_fenced_tasks(self, name: str, count: int) -> Future[None]:
        return self._write_as_leader([records.fenced_tasks_record(name, count)])

    def read_to_end(self, seconds: float = 30.0) -> Future[None]:
        done: Future[None] = Future()
        self._follow(self._topic.read_to_end(seconds), done, _unreadable)
        return done

    def cease_writes(self) -> None:
        self._given_up += 1

    def claim_writes(self) -> Future[None]:
        done: Future[None] = Future()
        if self._leader is None:
            done.set_result(None)
        else:
            self._follow(self._leader.claim(records.claim_record()), done, _as_it_is)
        return done

    def _write(self, pairs: Sequence[_KeyAndValue]) -> Future[None]:
        done: Future[None] = Future()
        began = self._tenure()
        written = self._topic.write(pairs, _WRITE_SECONDS, lambda: self._tenure() == began)
        self._follow(written, done, _unwritten)
        return done

    def _tenure(self) -> tuple[int, int]:
        """Return a value that changes whenever another worker may have become the leader."""
        return self._given_up, 0 if self._limit is None else self._limit.lapses()

    def _write_as_leader(self, pairs: Sequence[_KeyAndValue]) -> Future[None]:
        if self._leader is None:
            return self._write(pairs)
        done: Future[None] = Future()

        def written(outcome: Future[None]) -> None:
            error = outcome.exception()
            if error is None:
                self._follow(self._topic.read_to_end(_WRITE_SECONDS), done, _unwritten)
            else:
                done.set_exception(_unwritten(error))

        self._leader.write(pairs).add_done_callback(written)
        return done

    def _follow(
        self, first: Future[None], done: Future[None], explain: Callable[[BaseException], ConnectError]
    ) -> None:
        """Complete ``done`` with the result of ``first``, after the records that were posted earlier."""

        def finish(outcome: Future[None]) -> None:
            error = outcome.exception()
            if error is None:
                self._post(partial(done.set_result, None))
            else:
                done.set_exception(explain(error))

        first.add_done_callback(finish)

    def _arrive(self, record: TopicRecord) -> None:
        self._arrived.put(record)
        self._post(self._apply_arrived)

    def _apply_arrived(self) -> None:
        while True:
            try:
                record = self._arrived.get_nowait()
            except Empty:
                break
            self._apply(record)
        if self._listener is not None:
            self._note_inconsistent()

    def _apply(self, record: TopicRecord) -> None:
        self._offset = record.offset + 1
        try:
            parsed = records.parse(record.key, record.value)
        except DataError as error:
            key = (record.key or b"").decode("utf-8", "replace")
            logger.warning("Ignoring record %s of the config topic at offset %d: %s", key, record.offset, error)
            return
        change = self._state.apply(parsed, record.offset, record.timestamp)
        if change is not None and self._listener is not None:
            self._listener(change)

    def _lose_writes(self) -> None:
        if self._listener is not None:
            self._listener(WritesLost())

    def _note_inconsistent(self) -> None:
        inconsistent = self._state.inconsistent
        for name in sorted(inconsistent - self._known_inconsistent):
            logger.warning(
                "Connector %s has no task configs until its tasks are configured again: the config topic holds only "
                "some of those that were committed last, probably because it was compacted",
                name,
            )
        self._known_inconsistent = inconsistent


def _unwritten(error: BaseException) -> ConnectError:
    if isinstance(error, (FencedError, UnavailableError)):
        return error
    failed: ConnectError = RetriableError(
        "Failed to write to config topic; this may be due to a transient error and the request can be safely retried"
    )
    if is_too_large(error):
        failed = BadRequestError(
            "This is larger than a record of the config topic may be. Make it smaller, or raise max.message.bytes of "
            "the topic and producer.max.request.size of the workers."
        )
    elif isinstance(error, ConnectError) and not isinstance(error, RetriableError):
        failed = ConnectError(f"Failed to write to config topic: {error}")
    failed.__cause__ = error
    return failed


def _unreadable(error: BaseException) -> ConnectError:
    if isinstance(error, UnavailableError):
        return error
    failed = RetriableError("Failed to read to the end of the config topic in time; it will be tried again")
    failed.__cause__ = error
    return failed


def _as_it_is(error: BaseException) -> ConnectError:
    return error if isinstance(error, ConnectError) else ConnectError(str(error))
