"""The source of streams: the tasks are consumers of a group, and acknowledge an entry once Kafka has it.

============================================  ==================================================================
kill -9 here                                  then
============================================  ==================================================================
after a read, before Kafka has the entries    they are pending under the task's name: its successor reads them
                                              under another one, some seconds later
after Kafka has them, before their offset is  with exactly.once.support=required the offset is in the transaction
stored                                        of the records; otherwise they are published twice
after the offset is stored, before they are   they are acknowledged by the successor, and not published again
acknowledged
the server is killed                          what it has lost it hands out again: doubled, never lost. An entry
                                              that it lost with its disk is in Kafka, if it was read before
with at-most-once                             what was read and is not in Kafka is lost
============================================  ==================================================================
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from connect.data import Offset, Schema, SourceBatch, SourceRecord, StructColumn, ValueColumn
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.measurement import Measurement
from connect.source import ExactlyOnceSupport, SourceConnector, SourceTask
from connectors.redis.server import Client
from connectors.redis.stream_config import TASK_KEY, TASKS_KEY, RedisStreamSourceConfig
from connectors.redis.stream_consumers import FIRST, Consumer, free_name, is_of, left_behind, parsed_id
from connectors.redis.stream_group import Entry, MissingGroupError, StreamGroup

__all__ = ["STREAM_VALUE_SCHEMA", "RedisStreamSourceConnector", "RedisStreamSourceTask"]

_log = logging.getLogger(__name__)

STREAM_VALUE_SCHEMA: Final = Schema.struct(
    {
        "id": Schema.string(),
        "body": Schema.map(Schema.string(), Schema.string()),
        "stream": Schema.string(),
    },
    name="com.redis.kafka.connect.stream.Value",
)
_KEY_SCHEMA: Final = Schema.string()
_OFFSET: Final = "offset"
_LONGEST_BLOCK_MS: Final = 1_000
_LOOK_SECONDS: Final = 2.0
"""How often a task looks for entries that were left behind."""
_LAG_SECONDS: Final = 5.0
_MOST_UNACKNOWLEDGED: Final = 100_000


class RedisStreamSourceTask(SourceTask[RedisStreamSourceConfig]):
    """Reads what is pending for its consumer, then what is new; the first task also what was left behind."""

    def start(self) -> None:
        config = self.config
        self._is_acknowledging = config.redis_stream_delivery == "at-least-once"
        self._base = config.consumer(config.task)
        self._name = ""
        self._consumers: dict[str, Consumer] = {}
        self._client: Client | None = None
        self._group: StreamGroup | None = None
        self._look_due = 0.0
        self._lag_due = 0.0
        self._lag: int | None = None
        self._is_at_end = self._has_former = False
        self._deleted = 0
        self._again = 0
        self._safe: list[bytes] = []

    def poll(self) -> SourceBatch | None:
        try:
            return self._polled()
        except MissingGroupError:
            self._group = None
            raise
        except RetriableError:
            self._disconnect()
            raise

    def stored(self, offsets: Sequence[tuple[Offset, Offset]]) -> None:
        """Note which entries Kafka has for good, and acknowledge them."""
        if not self._is_acknowledging:
            return
        for partition, offset in offsets:
            consumer = self._consumers.get(str(partition.get("consumer")))
            if consumer is None or (stored := offset.get(_OFFSET)) is None:
                continue
            self._safe += consumer.stored(parsed_id(str(stored)))
        crash_point("redis-source-before-ack")
        try:
            self._acknowledge()
        except RetriableError as error:
            # They are acknowledged with the next ones.
            _log.warning("%s", error)

    def drained(self) -> bool:
        """Return whether all entries were read, also those that former consumers of this task have left."""
        is_waiting = any(consumer.pending_after is not None for consumer in self._consumers.values())
        return self._is_at_end and not self._has_former and not is_waiting

    def stop(self) -> None:
        """Give up the name, if nothing was read under it that Kafka may not have."""
        group = getattr(self, "_group", None)
        if group is not None and self._is_acknowledging:
            try:
                self._acknowledge()
                if all(each.name != self._name or not each.pending for each in group.consumers()):
                    group.remove(self._name)
            except ConnectError as error:
                _log.warning("%s", error)
        self._disconnect()

    def remaining(self) -> Mapping[str, int]:
        if self._group is not None and time.monotonic() >= self._lag_due:
            self._lag_due = time.monotonic() + _LAG_SECONDS
            try:
                self._lag = self._group.lag()
            except RetriableError:
                self._lag = None
        return {} if self._lag is None else {"entries": self._lag}

    def measurements(self) -> Iterable[Measurement]:
        waiting = sum(len(consumer.unacknowledged) for consumer in self._consumers.values())
        yield Measurement("redis_unacknowledged_entries", waiting, "Entries that Kafka may not have yet.")
        yield Measurement(
            "redis_read_again_total", self._again, "Entries that were pending at a start, or left behind."
        )
        yield Measurement(
            "redis_deleted_entries_total", self._deleted, "Entries that were deleted before they were read."
        )

    # -- reading -------------------------------------------------------------------------------------------------

    def _polled(self) -> SourceBatch | None:
        group = self._connected()
        self._acknowledge()
        own = self._consumers[self._name]
        if sum(len(each.unacknowledged) for each in self._consumers.values()) >= _MOST_UNACKNOWLEDGED:
            self.context.wait(0.1)
            return None
        for consumer in list(self._consumers.values()):
            if consumer.pending_after is not None:
                return self._pending(group, consumer)
        self._look_around(group)
        block = min(self.config.redis_stream_block, _LONGEST_BLOCK_MS, int(self._server_ms() / 2))
        entries = group.new(self._name, self.config.batch_size, block, keeps=self._is_acknowledging)
        self._is_at_end = not entries
        crash_point("redis-source-after-read")
        if not entries and not self.config.redis_stream_block:
            self.context.wait(0.1)
        return self._batch(own, entries)

    def _pending(self, group: StreamGroup, consumer: Consumer) -> SourceBatch | None:
        """Read what a consumer was given before, and publish what Kafka does not have."""
        assert consumer.pending_after is not None
        name = str(consumer.partition["consumer"])
        entries = group.pending(name, consumer.pending_after, self.config.batch_size)
        if not entries:
            consumer.pending_after = None
            return None
        consumer.pending_after = entries[-1][0].decode()
        known, under_way = consumer.published, set(consumer.unacknowledged)
        others = [entry for entry in entries if entry[0] not in under_way]
        has = [known is not None and parsed_id(key) <= known for key, _ in others]
        self._safe += [key for (key, _), is_there in zip(others, has, strict=True) if is_there]
        fresh = [entry for entry, is_there in zip(others, has, strict=True) if not is_there]
        self._again += len(fresh)
        return self._batch(consumer, fresh)

    def _look_around(self, group: StreamGroup) -> None:
        """Find entries that were left behind, and remove names that are no longer needed."""
        if not self._is_acknowledging or time.monotonic() < self._look_due:
            return
        self._look_due = time.monotonic() + _LOOK_SECONDS
        config, states = self.config, group.consumers()
        unused_ms = config.redis_stream_claim_idle_ms
        for state in left_behind(states, self._name, config.consumers, config.task, unused_ms):
            consumer = self._consumers.setdefault(state.name, self._consumer(state.name))
            if state.pending > len(consumer.unacknowledged):
                _log.warning("The consumer %s has left %d entries behind: reading them", state.name, state.pending)
                self._know(group, consumer)
                consumer.pending_after = FIRST
        self._has_former = any(
            state.pending > len(self._consumers[state.name].unacknowledged) if state.name in self._consumers else True
            for state in states
            if state.pending and state.name != self._name and is_of(self._base, state.name)
        )
        for state in states:
            is_former = state.name != self._name and is_of(self._base, state.name)
            if is_former and not state.pending and state.idle_ms >= unused_ms:
                group.remove(state.name)

    def _batch(self, consumer: Consumer, entries: Sequence[Entry]) -> SourceBatch | None:
        ids: list[str] = []
        bodies: list[dict[str, str]] = []
        last: bytes | None = None
        for key, fields in entries:
            if self._is_acknowledging:
                consumer.unacknowledged.append(key)
            last = key
            body = self._body(consumer, key, fields)
            if body is not None:
                ids.append(key.decode())
                bodies.append(body)
        if last is not None and (not ids or ids[-1] != last.decode()):
            # It was deleted, or is no text: its offset is stored, so that it is acknowledged.
            self.context.pass_offset(consumer.partition, {_OFFSET: last.decode()})
        if not ids:
            return None
        stream = self.config.redis_stream_name
        return SourceBatch.of(
            self.config.topic_name,
            StructColumn({"id": ids, "body": bodies, "stream": [stream] * len(ids)}, STREAM_VALUE_SCHEMA),
            source_partition=consumer.partition,
            source_offsets=[{_OFFSET: key} for key in ids],
            key=ValueColumn(ids, _KEY_SCHEMA),
            timestamps=[int(time.time() * 1000)] * len(ids),
        )

    def _body(self, consumer: Consumer, key: bytes, fields: Sequence[bytes] | None) -> dict[str, str] | None:
        """Return an entry's fields; ``None`` if it was deleted, or is no text and that is tolerated."""
        if fields is None:
            self._deleted += 1
            return None
        try:
            texts = [part.decode() for part in fields]
        except UnicodeError:
            record = SourceRecord(self.config.topic_name, b" ".join(fields), source_partition=consumer.partition)
            error = DataError(f"The entry {key.decode()} of {self.config.redis_stream_name} is not UTF-8.")
            self.context.errant_record_reporter.report(record, error)
            return None
        return dict(zip(texts[::2], texts[1::2], strict=True))

    def _acknowledge(self) -> None:
        if self._safe and self._group is not None:
            self._group.acknowledge(self._safe)
            self._safe = []
            crash_point("redis-source-after-ack")

    # -- the connection ------------------------------------------------------------------------------------------

    def _server_ms(self) -> float:
        return self.config.server.timeout_seconds * 1000

    def _connected(self) -> StreamGroup:
        if self._client is None:
            self._client = self.config.client()
        if self._group is None:
            group = StreamGroup(self._client, self.config.redis_stream_name, self.config.redis_stream_consumer_group)
            self._begin(group)
            self._group = group
        return self._group

    def _begin(self, group: StreamGroup) -> None:
        """See that there is a group, and read again what is pending: after an error, it is unknown what was sent."""
        stored = self._stored_ids()
        if not group.exists():
            known = [each for each in stored.values() if each is not None]
            # With the group, the server has lost what is pending; only what all consumers have published is safe.
            start = min(known, key=parsed_id) if len(known) == len(stored) else self.config.redis_stream_offset
            if group.create(start) and known:
                _log.warning("The consumer group is gone; reading on after %s", start)
        if not self._name:
            self._name = free_name(self._base, group.consumers(), self.config.redis_stream_claim_idle_ms)
            self._consumers[self._name] = self._consumer(self._name)
        if self._is_acknowledging:
            for consumer in self._consumers.values():
                self._know(group, consumer)
                consumer.pending_after = FIRST

    def _know(self, group: StreamGroup, consumer: Consumer) -> None:
        """Learn how far Kafka has the entries of a consumer."""
        offset = self.context.offset_storage_reader.offset(consumer.partition)
        known = [] if offset is None else [parsed_id(str(offset[_OFFSET]))]
        stored = max([*known, *([] if consumer.published is None else [consumer.published])], default=None)
        newest = group.last_id()
        if stored is not None and (newest is None or stored > newest):
            _log.warning(
                "The stream %s is older than what was read of it: it was created anew, or has lost entries. What is "
                "pending is published again.",
                self.config.redis_stream_name,
            )
            stored = None
        consumer.published = stored

    def _consumer(self, name: str) -> Consumer:
        return Consumer(self._partition(name))

    def _partition(self, name: str) -> Offset:
        config = self.config
        return {"stream": config.redis_stream_name, "group": config.redis_stream_consumer_group, "consumer": name}

    def _stored_ids(self) -> dict[str, str | None]:
        names = self.config.consumers
        offsets = self.context.offset_storage_reader.offsets([self._partition(name) for name in names])
        return {
            name: None if offset is None else str(offset[_OFFSET]) for name, offset in zip(names, offsets, strict=True)
        }

    def _disconnect(self) -> None:
        self._group = None
        if (client := getattr(self, "_client", None)) is not None:
            client.close()
            self._client = None


class RedisStreamSourceConnector(SourceConnector[RedisStreamSourceConfig]):
    """Publishes the entries of a stream, as consumers of a group."""

    task_class = RedisStreamSourceTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return as many tasks as may be: the server divides the entries among them."""
        own = self.config.props_for_tasks()
        return [{**own, TASK_KEY: str(task), TASKS_KEY: str(max_tasks)} for task in range(max_tasks)]

    @classmethod
    def exactly_once_support(cls, config: RedisStreamSourceConfig) -> ExactlyOnceSupport:
        """Entries are acknowledged once their offsets are stored, and only pending ones are looked at again."""
        is_kept = config.redis_stream_delivery == "at-least-once"
        return ExactlyOnceSupport.SUPPORTED if is_kept else ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: RedisStreamSourceConfig, offsets: Mapping[str, Offset | None]) -> bool:  # noqa: ARG003
        """Allow any offsets, which decide over pending entries only: the consumer group knows what was handed out."""
        return False
