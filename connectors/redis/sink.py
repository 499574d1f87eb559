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
from connectors.redis.limits import Limits, bytes_of
from connectors.redis.offsets import OffsetKeys, StoredOffset, StoredOffsets, decoded, encoded
from connectors.redis.positions import Positions
from connectors.redis.server import Client, Line
from connectors.redis.sink_config import RedisSinkConfig

__all__ = [
    "RedisCacheSinkConnector",
    "RedisCacheSinkTask",
    "RedisSinkConnector",
    "RedisSinkTask",
]

_log = logging.getLogger(__name__)
_Refusals = list[tuple[SinkRecord, DataError]]
_Lines = list[tuple[SinkRecord, Command]]


C = TypeVar("C", RedisSinkConfig, RedisCacheSinkConfig)


class WritingTask(SinkTask[C], Generic[C]):
    """Writes each batch before ``put`` returns, in one pipeline or in one transaction with its offsets.

    ==========================================  ====================================================================
    kill -9 here                                then
    ==========================================  ====================================================================
    before, in or after a pipeline              the records of the batch are consumed and written again: the same
                                                keys with the same values. A message of PUBLISH, and an entry without
                                                redis.multiexec, is there twice
    the server is emptied, or comes back with   it is seen by the offsets: the first batch of a partition writes one
    less, at any moment                         before its data. The task goes back
    after the server has lost data, before it   the offsets in Redis still show it: they are not moved on before the
    is written again                            task has gone back
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
        self._limits = Limits()
        self._line = Line()
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
                while self._write_with_offsets(records):
                    pass
            else:
                self._write_at_least_once(records)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if not self._writing.keeps_offsets or not offsets:
            return offsets
        with self._talking():
            kept = self._without_lost(offsets)
            if not self._writing.is_exact:
                with self._line.held():
                    kept = self._moved_on(kept)
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
            client = self.config.client(self._line)
            if problem := module_problem(client, self._writing.structure):
                raise ConnectError(problem)
            self._limits = Limits.of(client)
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

    def _write_at_least_once(self, records: SinkBatch) -> None:
        if self._writing.keeps_offsets and (unread := self._positions.unread(set(records.origins))):
            records = self._after_late_reading(records, unread)
        lines, refused, _ = self._commands(records)
        ends = _ends(records)
        if lines:
            marks = self._positions.unmarked(_beginnings(records)) if self._writing.keeps_offsets else {}
            refused += self._written(lines, marks)
        with self._line.held():
            # Before offsets, so that a kill leaves none unreported; and after the others, which a record that fails
            # the task does not prevent from being written.
            self._give_up(refused)
            if self._writing.keeps_offsets and ends:
                self._moved_on(self._without_lost(ends))

    def _written(self, lines: Sequence[tuple[SinkRecord, Command]], marks: Mapping[TopicPartition, int]) -> _Refusals:
        """Write in one pipeline, and return the records that the server has refused.

        ``marks`` are written first: an offset for each partition of which Redis has none. If the server is emptied
        before the one after the batch is stored, it is seen by their absence.
        """
        keys = self._stored.keys
        with told("write to Redis"):
            pipe = self._connected().pipeline(transaction=False)
            for partition, offset in marks.items():
                pipe.set(keys.key(partition), encoded(partition, offset, self._ids))
            for _, command in lines:
                pipe.execute_command(*command)
            if self._writing.wait_replicas:
                pipe.execute_command("WAIT", self._writing.wait_replicas, self._writing.wait_ms)
            answers = pipe.execute(raise_on_error=False)
        crash_point("redis-sink-after-pipeline")
        for answer in answers[: len(marks)]:
            if isinstance(answer, Exception):
                raise failure(answer, "store offsets in Redis") or answer
        if self._writing.wait_replicas:
            self._check_replicas(answers.pop())
        self._positions.wrote(marks)
        return self._refusals(lines, answers[len(marks) :])

    def _without_lost(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Go back where the offsets that are there show that Redis has lost something; return the other offsets.

        Not only with the next commit: what a server has lost since the last one would not be seen. And without new
        offsets: a kill now would leave them in the place of those that show the loss.
        """
        backs = self._positions.lost(_plain(self._stored.read(self._connected(), ends)))
        self._go_back(backs)
        return {partition: end for partition, end in ends.items() if partition not in backs}

    def _moved_on(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Store offsets; return those under which Redis has not just lost what is before them."""
        client, news = self._connected(), self._positions.news(ends)
        before = _plain(self._stored.exchange(client, news, self._ids))
        crash_point("redis-sink-after-offsets")
        if backs := self._positions.lost(before):
            self._go_back(backs)
            self._stored.write(client, {partition: before[partition] for partition in backs}, self._ids)
        kept = {partition: end for partition, end in ends.items() if partition not in backs}
        self._positions.wrote(kept)
        return kept

    def _after_late_reading(self, records: SinkBatch, unread: Collection[TopicPartition]) -> SinkBatch:
        stored = self._read(unread)
        every = records.origins
        places = [place for place, origin in enumerate(every) if origin in stored]
        origins = [every[place] for place in places]
        offsets = [records.original_offsets[place] for place in places]
        reached = self._positions.reached(origins, offsets, stored)
        self._go_back(reached.backs)
        return records.take([place for place, origin in enumerate(every) if origin not in reached.backs])

    # -- exactly once --------------------------------------------------------------------------------------------

    def _write_with_offsets(self, records: SinkBatch) -> bool:
        """Write what Redis does not have yet, and the offsets after it, in one transaction; return whether there is
        more than one can take.

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
                    return False
                self._check_type(pipe, records.topic)
                return self._write_watched(pipe, records if self._is_unsettled else fresh, fresh, stored)
        except WatchError as error:
            text = "Another task has written the same partitions meanwhile"
            raise RetriableError(f"{text}; what it has left is written.", 0.01) from error

    def _write_watched(
        self, pipe: Any, settled: SinkBatch, fresh: SinkBatch, stored: Mapping[TopicPartition, int | None]
    ) -> bool:
        lines, refused, count = self._commands(fresh, self._limits.transaction_bytes)
        self._give_up(refused)
        ends = {tp: offset for tp, offset in stored.items() if offset is not None and tp in set(settled.origins)}
        ends |= _ends(fresh.take(list(range(count))))
        pipe.multi()
        for _, command in lines:
            pipe.execute_command(*command)
        for partition, end in ends.items():
            pipe.set(self._stored.keys.key(partition), encoded(partition, end, self._ids))
        crash_point("redis-sink-before-exec")
        answers = pipe.execute(raise_on_error=False)
        crash_point("redis-sink-after-exec")
        self._positions.wrote(ends)
        with self._line.held():
            self._undo_if_refused(lines, answers, {tp: stored.get(tp) for tp in ends})
            self._wait_after_transaction(ends)
        return count < len(fresh)

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

    def _commands(self, records: SinkBatch, most_bytes: int | None = None) -> tuple[_Lines, _Refusals, int]:
        """Return the commands of the first records, as many as ``most_bytes`` holds, but one at least; the records of
        which there are none, and how many records these are.
        """
        self._connected()
        lines: _Lines = []
        refused: _Refusals = []
        size = 0
        for count, record in enumerate(records):
            try:
                made = self._writer.commands(record)
                self._limits.check(made)
            except DataError as error:
                refused.append((record, error))
                continue
            if most_bytes is not None:
                size += sum(map(bytes_of, made))
                if lines and size > most_bytes:
                    return lines, refused, count
            lines += [(record, command) for command in made]
        return lines, refused, len(records)

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
        """Report records, and make these reports durable, and those of records that did not get as far as the task:
        offsets move past them next."""
        for record, error in refused:
            give_up(self.context, record, error, "written")
        if (reporter := self.context.errant_record_reporter) is not None:
            reporter.flush()


def _offset_keys(config: RedisSinkConfig | RedisCacheSinkConfig) -> OffsetKeys:
    writing = config.writing
    tagged = RecordWriter(writing).collection if writing.is_offset_tagged else None
    return OffsetKeys(str(config.originals.get("name") or ""), writing.java_offset_prefix, tagged)


def _beginnings(records: SinkBatch) -> dict[TopicPartition, int]:
    """Return the offset of the first record of each partition."""
    pairs = list(zip(records.origins, records.original_offsets, strict=True))
    return dict(reversed(pairs))


def _ends(records: SinkBatch) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition."""
    return {origin: offset + 1 for origin, offset in zip(records.origins, records.original_offsets, strict=True)}


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
