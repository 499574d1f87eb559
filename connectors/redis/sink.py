"""The sinks of Redis: records become keys, fields, entries and members."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from connect.data import SinkBatch, SinkRecord, TopicPartition
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.deliveries import give_up
from connect.sink import SinkConnector, SinkTask
from connectors.redis.cache_config import RedisCacheSinkConfig
from connectors.redis.checks import module_problem
from connectors.redis.commands import Command, RecordWriter
from connectors.redis.failures import Kind, code_of, failure, kind_of, told
from connectors.redis.offsets import OffsetKeys, StoredOffset, StoredOffsets, decoded, encoded
from connectors.redis.positions import Positions
from connectors.redis.server import Client
from connectors.redis.sink_config import RedisSinkConfig

__all__ = [
    "RedisCacheSinkConnector",
    "RedisCacheSinkTask",
    "RedisSinkConnector",
    "RedisSinkTask",
]

_log = logging.getLogger(__name__)
_Refusals = list[tuple[SinkRecord, DataError]]


C = TypeVar("C", RedisSinkConfig, RedisCacheSinkConfig)


class WritingTask(SinkTask[C], Generic[C]):
    """Writes each batch before ``put`` returns, in one pipeline or in one transaction with its offsets.

    ==========================================  ====================================================================
    kill -9 here                                then
    ==========================================  ====================================================================
    before or in a pipeline                     the records since the last stored offset are consumed and written
                                                again: the same keys with the same values. A message of PUBLISH, and
                                                an entry without redis.multiexec, is there twice
    before or in a transaction (MULTI)          nothing of it has happened, or all: the server runs it as one
    after it, before the offsets are committed  they are not written again: the offsets are in the transaction
    the server is killed                        it comes back with what it has kept on its disk, data and offsets
                                                alike; the task sees that its offsets are older, and goes back
    after bad records were reported             they are reported again if what follows them was not written
    ==========================================  ====================================================================
    """

    def start(self) -> None:
        self._writing = self.config.writing
        self._writer = RecordWriter(self._writing)
        self._stored = StoredOffsets(_offset_keys(self.config))
        self._positions = Positions(self._writing.refills)
        self._ids: dict[str, str] = {}
        self._client: Client | None = None
        self._is_unsettled = False

    def open(self, partitions: Collection[TopicPartition]) -> None:
        if not self._writing.keeps_offsets:
            return
        self._ids |= self.context.topic_ids({partition.topic for partition in partitions})
        try:
            with self._talking():
                self.context.offset(self._positions.opened(self._read(partitions)))
        except RetriableError as error:
            # They are read before the first record is written.
            _log.warning("%s", error)

    def put(self, records: SinkBatch) -> None:
        if not len(records):
            return
        with self._talking():
            if self._writing.is_exact:
                refused = self._write_with_offsets(records)
            else:
                refused = self._write_at_least_once(records)
        # Last, so that a record that fails the task does not prevent the others from being written.
        self._give_up(refused)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if not self._writing.keeps_offsets or not offsets:
            return offsets
        with self._talking():
            backs = self._positions.lost(_plain(self._stored.read(self._connected(), offsets)))
            self._go_back(backs)
            kept = {partition: offset for partition, offset in offsets.items() if partition not in backs}
            if not self._writing.is_exact:
                self._stored.write(self._connected(), kept, self._ids)
                self._positions.wrote(kept)
        crash_point("redis-sink-before-commit")
        return kept

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._positions.forget(partitions)

    def stop(self) -> None:
        if (client := getattr(self, "_client", None)) is not None:
            client.close()

    # -- the connection ------------------------------------------------------------------------------------------

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Give up the connection when something passing is in the way: the next one may lead to another server."""
        try:
            yield
        except RetriableError as error:
            if self._client is not None:
                self._client.close()
                self._client = None
            raise RetriableError(str(error), error.retry_after or self._writing.retry_seconds) from error

    def _connected(self) -> Client:
        if self._client is None:
            client = self.config.client()
            if problem := module_problem(client, self._writing.structure):
                raise ConnectError(problem)
            self._client = client
        return self._client

    # -- offsets -------------------------------------------------------------------------------------------------

    def _read(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the offsets in Redis, having deleted those of earlier topics of the same names."""
        client = self._connected()
        found = self._stored.read(client, partitions)
        missing = [partition for partition, stored in found.items() if stored is None]
        if missing and (taken := self._stored.take_over(client, missing)):
            _log.info("Continuing from the offsets of the Java connector: %s", _shown(taken))
            found |= self._stored.read(client, taken)
        earlier = [
            partition
            for partition, stored in found.items()
            if stored is not None and stored.topic_id not in (None, self._ids.get(partition.topic, stored.topic_id))
        ]
        if earlier:
            _log.warning("%s: the topic was created anew, and is written from its beginning", _shown(earlier))
            self._stored.write(client, dict.fromkeys(earlier), {})
        return _plain(found) | dict.fromkeys(earlier)

    def _go_back(self, backs: Mapping[TopicPartition, int]) -> None:
        if backs:
            _log.warning("Redis does not have all that was written. Going back: %s", _shown_offsets(backs))
            self.context.offset(backs)

    # -- at least once -------------------------------------------------------------------------------------------

    def _write_at_least_once(self, records: SinkBatch) -> _Refusals:
        if self._writing.keeps_offsets and (unread := self._positions.unread(set(records.origins))):
            records = self._after_late_reading(records, unread)
        lines, refused = self._commands(records)
        if not lines:
            return refused
        with told("write to Redis"):
            pipe = self._connected().pipeline(transaction=False)
            for _, command in lines:
                pipe.execute_command(*command)
            if self._writing.wait_replicas:
                pipe.execute_command("WAIT", self._writing.wait_replicas, self._writing.wait_ms)
            answers = pipe.execute(raise_on_error=False)
        crash_point("redis-sink-after-pipeline")
        if self._writing.wait_replicas:
            self._check_replicas(answers.pop())
        return refused + self._refusals(lines, answers)

    def _after_late_reading(self, records: SinkBatch, unread: Collection[TopicPartition]) -> SinkBatch:
        stored = self._read(unread)
        places = [place for place, origin in enumerate(records.origins) if origin in stored]
        origins = [records.origins[place] for place in places]
        offsets = [records.original_offsets[place] for place in places]
        reached = self._positions.reached(origins, offsets, stored)
        self._go_back(reached.backs)
        return records.take([place for place, origin in enumerate(records.origins) if origin not in reached.backs])

    # -- exactly once --------------------------------------------------------------------------------------------

    def _write_with_offsets(self, records: SinkBatch) -> _Refusals:
        """Write what Redis does not have yet, and the offsets after it, in one transaction.

        The offsets are watched: if another task writes them meanwhile, nothing is written.
        """
        from redis.exceptions import WatchError  # noqa: PLC0415 - the client is loaded only where it is used

        keys = self._stored.keys
        partitions = sorted(set(records.origins))
        if unread := self._positions.unread(partitions):
            # Deletes those of an earlier topic.
            self._read(unread)
        watched = [keys.key(partition) for partition in partitions]
        try:
            with told("write to Redis"), self._connected().pipeline(transaction=True) as pipe:
                pipe.watch(*watched)
                values = pipe.execute_command("MGET", *watched)
                found = {tp: decoded(key, value) for tp, key, value in zip(partitions, watched, values, strict=True)}
                stored = _plain(found)
                reached = self._positions.reached(records.origins, records.original_offsets, stored)
                self._go_back(reached.backs)
                fresh = records.take(reached.places)
                if not len(fresh) and not self._is_unsettled:
                    return []
                self._check_type(pipe, records.topic)
                return self._write_watched(pipe, records if self._is_unsettled else fresh, fresh, stored)
        except WatchError as error:
            text = "Another task has written the same partitions meanwhile"
            raise RetriableError(f"{text}; what it has left is written.", 0.01) from error

    def _write_watched(
        self, pipe: Any, settled: SinkBatch, fresh: SinkBatch, stored: Mapping[TopicPartition, int | None]
    ) -> _Refusals:
        lines, refused = self._commands(fresh)
        # Their offsets are stored with those of the others: the reports must be durable before.
        self._give_up(refused)
        if refused and (reporter := self.context.errant_record_reporter) is not None:
            reporter.flush()
        ends = {tp: offset for tp, offset in stored.items() if offset is not None and tp in set(settled.origins)}
        for origin, offset in zip(fresh.origins, fresh.original_offsets, strict=True):
            ends[origin] = offset + 1
        pipe.multi()
        for _, command in lines:
            pipe.execute_command(*command)
        for partition, end in ends.items():
            pipe.set(self._stored.keys.key(partition), encoded(partition, end, self._ids))
        crash_point("redis-sink-before-exec")
        answers = pipe.execute(raise_on_error=False)
        crash_point("redis-sink-after-exec")
        self._positions.wrote(ends)
        self._undo_if_refused(lines, answers, {tp: stored.get(tp) for tp in ends})
        self._wait_after_transaction(ends)
        return []

    def _check_type(self, pipe: Any, topic: str) -> None:
        """See that the collection can be written: a transaction does not undo what it did beside a failure."""
        key = self._writer.collection(topic)
        found = pipe.execute_command("TYPE", key).decode()
        if found not in ("none", self._writing.structure.redis_type):
            raise ConnectError(
                f"The key {key.decode(errors='replace')} is a {found}, to which {self._writing.structure} cannot "
                "write: choose another redis.key, or delete the key."
            )

    def _undo_if_refused(
        self,
        lines: Sequence[tuple[SinkRecord, Command]],
        answers: Sequence[Any],
        before: Mapping[TopicPartition, int | None],
    ) -> None:
        """Put the offsets back if the server refused commands of a transaction, which it runs to its end all the
        same."""
        for _, answer in zip(lines, answers, strict=False):
            if isinstance(answer, Exception):
                self._stored.write(self._connected(), before, self._ids)
                raise failure(answer, "write to Redis") or answer

    def _wait_after_transaction(self, ends: Mapping[TopicPartition, int]) -> None:
        if not self._writing.wait_replicas:
            return
        # WAIT is about the writes of its own connection: the last offset is written again with it.
        self._is_unsettled = True
        with told("write to Redis"):
            pipe = self._connected().pipeline(transaction=False)
            for partition, end in ends.items():
                pipe.set(self._stored.keys.key(partition), encoded(partition, end, self._ids))
            pipe.execute_command("WAIT", self._writing.wait_replicas, self._writing.wait_ms)
            answers = pipe.execute()
        self._check_replicas(answers[-1])
        self._is_unsettled = False

    # -- records -------------------------------------------------------------------------------------------------

    def _commands(self, records: SinkBatch) -> tuple[list[tuple[SinkRecord, Command]], _Refusals]:
        lines: list[tuple[SinkRecord, Command]] = []
        refused: _Refusals = []
        commands = self._writer.commands
        for record in records:
            try:
                lines += [(record, command) for command in commands(record)]
            except DataError as error:
                refused.append((record, error))
        return lines, refused

    def _refusals(self, lines: Sequence[tuple[SinkRecord, Command]], answers: Sequence[Any]) -> _Refusals:
        """Return the records that the server has refused; raise if what it refuses is not the record."""
        refused: dict[int, tuple[SinkRecord, DataError]] = {}
        for (record, command), answer in zip(lines, answers, strict=True):
            if not isinstance(answer, Exception):
                continue
            if kind_of(answer) is not Kind.RECORD or (
                self._writing.structure.is_collection and code_of(answer) == "WRONGTYPE"
            ):
                raise failure(answer, "write to Redis") or answer
            error = DataError(f"Redis refuses {command[0]!s}: {answer}")
            refused.setdefault(id(record), (record, error))
        return list(refused.values())

    def _check_replicas(self, answer: Any) -> None:
        if isinstance(answer, Exception):
            raise failure(answer, "wait for the replicas") or answer
        if int(answer) < self._writing.wait_replicas:
            raise RetriableError(
                f"Only {answer} of redis.wait.replicas={self._writing.wait_replicas} replicas had what was written "
                f"within {self._writing.wait_ms} ms."
            )

    def _give_up(self, refused: _Refusals) -> None:
        for record, error in refused:
            give_up(self.context, record, error, "written")


def _offset_keys(config: RedisSinkConfig | RedisCacheSinkConfig) -> OffsetKeys:
    writing = config.writing
    tagged = RecordWriter(writing).collection if writing.is_offset_tagged else None
    return OffsetKeys(str(config.originals.get("name") or ""), writing.java_offset_prefix, tagged)


def _plain(stored: Mapping[TopicPartition, StoredOffset | None]) -> dict[TopicPartition, int | None]:
    return {partition: None if each is None else each.offset for partition, each in stored.items()}


def _shown(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(f"{partition.topic}-{partition.partition}" for partition in sorted(partitions))


def _shown_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition} to offset {offset}" for tp, offset in sorted(offsets.items()))


class RedisSinkTask(WritingTask[RedisSinkConfig]):
    """Writes under the keys of Redis's own connector."""


class RedisCacheSinkTask(WritingTask[RedisCacheSinkConfig]):
    """Writes strings, under the keys of jcustenborder's connector."""


def _alter(config: RedisSinkConfig | RedisCacheSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
    """Alter the offsets in Redis, which are those that count."""
    writing = config.writing
    if writing.keeps_offsets:
        client = config.client()
        try:
            # Without ids, as it is the user who says that the offsets are of today's topics.
            stored = StoredOffsets(_offset_keys(config))
            stored.take_over(client, list(offsets))
            stored.write(client, offsets, {})
        finally:
            client.close()
    return True


class RedisSinkConnector(SinkConnector[RedisSinkConfig]):
    """Writes records to Redis or Valkey as strings, hashes, JSON, streams, lists, sets, time series or messages."""

    task_class = RedisSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration for each task."""
        return [self.config.props_for_tasks()] * max_tasks

    @classmethod
    def alter_offsets(cls, config: RedisSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Alter the offsets in Redis as well: those are the ones that count."""
        return _alter(config, offsets)


class RedisCacheSinkConnector(SinkConnector[RedisCacheSinkConfig]):
    """Writes records to Redis or Valkey as strings: the record's key is the key."""

    task_class = RedisCacheSinkTask
    watches = False

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the connector's own configuration for each task."""
        return [self.config.props_for_tasks()] * max_tasks

    @classmethod
    def alter_offsets(cls, config: RedisCacheSinkConfig, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Alter the offsets in Redis as well: those are the ones that count."""
        return _alter(config, offsets)
