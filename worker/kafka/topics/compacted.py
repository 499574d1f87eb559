"""A compacted topic: read from beginning to end, then followed, and written to.

Crash point: acknowledged records are on the topic and are read again after a restart; a write that was not acknowledged
may or may not be there. There is no other storage.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from connect.errors import ConnectError
from connect.internals.kafka.auth.rights import is_denial, is_login_refused
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.errors import UnavailableError
from worker.kafka.topics.compacted_clients import (
    WriteLimit,
    closed_error,
    denied_error,
    ends_reader_properties,
    gone_text,
    is_late,
    is_transient,
    late_error,
    reader_properties,
    refused_write_error,
    replaced_text,
    unread_partition_error,
    write_limit_error,
    writer_properties,
)
from worker.kafka.topics.on_demand_client import OnDemandClient

__all__ = ["CompactedTopic", "TopicRecord"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 250
_BATCHES_UNDER_WAY: Final = 2
_FETCH_SECONDS: Final = 0.25
_QUIET_FETCH_SECONDS: Final = 5.0
"""How long one call of the client waits for records, before the topic is started and after that."""
_ASK_SECONDS: Final = 2.0
_ASK_AGAIN_SECONDS: Final = 0.25
_LEAST_WAIT_SECONDS: Final = 0.001
_MOST_WAIT_SECONDS: Final = 0.1
_IDLE_SECONDS: Final = 1.0
_MISSING: Final = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC))
_AT_REST_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record on the topic; without a value it is a tombstone. ``timestamp`` is in milliseconds since 1970."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(slots=True, eq=False)
class _Write:
    """Records that were sent together, and the offsets up to which the topic must be read to have seen them.

    ``after`` is how far each partition had been read before, so a record that gets a lower offset is in another topic.
    """

    future: Future[None]
    deadline: float
    records: Sequence[tuple[bytes, bytes | None]]
    read_back: bool
    unacknowledged: int
    may_wait: Callable[[], bool]
    """Whether a failed write may be retried beyond the limit instead of failing."""
    after: Mapping[int, int] = field(default_factory=dict)
    seen_at: dict[int, int] = field(default_factory=dict)
    late: KafkaError | None = None


@dataclass(slots=True, eq=False)
class _Read:
    """A wait until each partition is read to its end; ``ends`` is ``None`` while the ends are unknown."""

    future: Future[None]
    deadline: float
    ends: Mapping[int, int] | None = None


class CompactedTopic:
    """Passes on the records of a topic in order, from the first one, and writes to it.

    ``start`` raises when the brokers deny access. Later, denials are logged and retried, because access may be granted
    again.

    ``on_record`` is called in the topic's own thread, and by ``start`` in its caller's thread. Futures are completed in
    the topic's thread, in the order of events: when one is done, everything it waited for has been passed on. All
    methods except ``start``, ``under_way`` and ``close`` return at once and may be called from any thread. While the
    brokers are away, it keeps trying and logs this once.

    The partitions are looked up at the start: one that is added later is not read until the worker is restarted, and
    writes to it fail. If the topic is deleted and created again, the new one is read from its beginning as soon as the
    client notices; records of the old one were passed on and are not taken back, so restart the worker. ``refusal``
    tells of both: that the topic is gone until it can be read, that it was created again until the worker ends.

    It costs two threads here and four sleeping ones in the client library, seven more while it is written to or its end
    is looked up, some 2 MB, and at most a few MiB of records that were fetched but not passed on.
    """

    def __init__(
        self,
        topic: str,
        consumer: ClientProperties,
        producer: ClientProperties,
        on_record: Callable[[TopicRecord], None],
        limit: WriteLimit | None = None,
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._limit = limit or WriteLimit(math.inf, lambda _: True, lambda: 0)
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._consumer = librdkafka.consumer(reader_properties(consumer), self._report)
        # A connection that waits for records answers nothing else for half a second, so the ends are requested on
        # another.
        ends, writes = ends_reader_properties(consumer), writer_properties(producer, self._limit.seconds)
        self._ends_reader = OnDemandClient(lambda: librdkafka.consumer(ends, self._report_others))
        self._writer = OnDemandClient(lambda: librdkafka.producer(writes, self._report_others))
        self._thread = threading.Thread(target=self._loop, name=f"topic-{topic}", daemon=True)
        self._fetcher = threading.Thread(target=self._fetch, name=f"topic-{topic}-fetch", daemon=True)
        self._room = threading.Semaphore(_BATCHES_UNDER_WAY)
        self._ending = threading.Event()
        # Everything below belongs to the topic's thread.
        self._open = True
        self._unreachable = False
        self._refusal: KafkaError | None = None
        self._complained: set[int] = set()
        self._gone: str | None = None
        self._replaced: str | None = None
        self._position: dict[int, int] = {}
        self._partitions: frozenset[int] = frozenset()
        self._unsent: deque[tuple[_Write, bytes, bytes | None]] = deque()
        self._writes: set[_Write] = set()
        self._reads: set[_Read] = set()
        self._ask_at = 0.0
        self._wait = _LEAST_WAIT_SECONDS

    def start(self, timeout: float, *, awaits_transactions: bool = True) -> None:
        """Return when all records on the topic have been passed on.

        Unless it ``awaits_transactions``, these are the records before the first open transaction; later ones are
        passed on when it has ended. A killed process may have left it open, and only its successor, starting after
        this, can end it. Raises :class:`~connect.errors.ConnectError` if this takes longer than ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        extent = self._find_extent(deadline, self._ends_reader.client if awaits_transactions else self._consumer)
        self._partitions = frozenset(extent)
        self._position = {number: offsets.start for number, offsets in extent.items()}
        try:
            self._read_all(extent, deadline)
        except BaseException:
            self.close(0.0)
            raise
        self._consumer.assign(self._where(self._partitions))
        self._thread.start()
        self._fetcher.start()

    def under_way(self, timeout: float) -> list[int]:
        """Return the partitions that end with an open transaction.

        Call this before ``start``; it raises the same errors.
        """
        deadline = time.monotonic() + timeout
        committed = self._find_extent(deadline, self._consumer)
        ends = self._find_extent(deadline, self._ends_reader.client)
        return [number for number in sorted(ends) if committed[number].stop < ends[number].stop]

    def _read_all(self, extent: Mapping[int, range], deadline: float) -> None:
        """Pass on all records in the caller's thread.

        If one partition of a fetch has no records, the broker waits half a second before it answers for all partitions
        of the request. So only partitions with records are read.
        """
        ends = {number: offsets.stop for number, offsets in extent.items() if offsets}
        if ends:
            self._consumer.assign(self._where(ends))
        while not self._is_read(ends):
            if time.monotonic() >= deadline:
                raise late_error(self._topic, "could not be read to its end")
            self._take(self._fetched())
            self._heed_refusal()

    def send(self, key: bytes, value: bytes | None, timeout: float = math.inf) -> Future[None]:
        """Write a record or a tombstone; done when it is acknowledged.

        Fails with :class:`~connect.errors.ConnectError` when the topic is closed or the broker refuses it, and with
        :class:`~connect.errors.RetriableError` after ``timeout`` seconds, although it may still be written later.
        """
        return self._write([(key, value)], timeout)

    def send_all(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float = math.inf) -> Future[None]:
        """Write records in order; done when all are acknowledged. Fails like :meth:`send`."""
        return self._write(records, timeout)

    def write(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        timeout: float = math.inf,
        may_wait: Callable[[], bool] = lambda: False,
    ) -> Future[None]:
        """Write records in order; done when all are acknowledged and passed on. Fails like :meth:`send`.

        Records that could not be delivered within the limit are retried until ``timeout``, as long as it ``may_wait``.
        """
        return self._write(records, timeout, read_back=True, may_wait=may_wait)

    def read_to_end(self, timeout: float = math.inf) -> Future[None]:
        """Return a future that is done when all records now on the topic were passed on. Fails like :meth:`send`."""
        read = _Read(Future(), time.monotonic() + timeout)
        self._inbox.put(partial(self._begin_read, read))
        return read.future

    def close(self, timeout: float = 5.0) -> None:
        """End, after waiting up to ``timeout`` seconds for acknowledgements. Open requests fail.

        The client cannot be interrupted while it waits for records. So the fetching thread ends by itself a few seconds
        later, and closes it then.
        """
        self._inbox.put(partial(self._end, time.monotonic() + timeout))
        self._ending.set()
        if self._fetcher.ident is None:
            self._consumer.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._ends_reader.close()
        self._writer.close()
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Fail requests made after the end, or without a start."""
        self._open = False
        while True:
            try:
                self._inbox.get_nowait()()
            except Empty:
                break

    def _find_extent(self, deadline: float, asked: Consumer) -> dict[int, range]:
        """Return the range of offsets of each partition, as a consumer sees it."""
        while True:
            wait = min(max(deadline - time.monotonic(), 0.1), _ASK_SECONDS)
            try:
                described = self._consumer.list_topics(self._topic, timeout=wait).topics[self._topic]
                if described.error is not None or not described.partitions:
                    raise KafkaException(described.error or KafkaError(KafkaError._UNKNOWN_PARTITION))
                begins = self._offsets(asked, OFFSET_BEGINNING, described.partitions, wait)
                ends = self._offsets(asked, OFFSET_END, described.partitions, wait)
            except KafkaException as error:
                self._consumer.poll(0)
                self._ends_reader.client.poll(0)
                self._note_refusal(error.args[0])
                self._heed_refusal()
                if time.monotonic() >= deadline:
                    raise ConnectError(
                        f"Topic '{self._topic}' cannot be described ({error.args[0].str()}): check bootstrap.servers"
                    ) from error
                time.sleep(_MOST_WAIT_SECONDS)
            else:
                return {number: range(begins[number], ends[number]) for number in ends}

    @property
    def refusal(self) -> str | None:
        """Why the topic cannot be used: its brokers deny access, it is gone, or another has taken its place.

        May be called by any thread.
        """
        refusal = self._refusal
        return str(denied_error(self._topic, refusal, "Read")) if refusal is not None else self._replaced or self._gone

    def _heed_refusal(self) -> None:
        """Before the topic's thread has started, fail if the brokers deny this worker access."""
        while not self._inbox.empty():
            self._inbox.get()()
        if self._refusal is not None:
            raise denied_error(self._topic, self._refusal, "Read")

    def _offsets(self, asked: Consumer, which: int, partitions: Iterable[int], timeout: float) -> dict[int, int]:
        """Return the first or last offset of each partition. Raises ``KafkaException`` if one is not available."""
        wanted = [TopicPartition(self._topic, number, which) for number in partitions]
        found = asked.offsets_for_times(wanted, timeout=timeout)
        for item in found:
            if item.error is not None:
                raise KafkaException(item.error)
        return {item.partition: item.offset for item in found}

    def _where(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, number, self._position[number]) for number in partitions]

    def _fetch(self) -> None:
        while not self._ending.is_set():
            if not self._room.acquire(timeout=_FETCH_SECONDS):
                continue
            if messages := self._fetched(_QUIET_FETCH_SECONDS):
                self._inbox.put(partial(self._take_fetched, messages))
            else:
                self._room.release()
        self._consumer.close()

    def _fetched(self, seconds: float = _FETCH_SECONDS) -> list[Any]:
        """Return the messages that arrive within ``seconds``. Used by one thread at a time."""
        # Not poll, which wakes up five times a second while it waits.
        first = self._consumer.consume(1, seconds)
        return [*first, *self._consumer.consume(_AT_ONCE, 0)] if first else []

    def _loop(self) -> None:
        while self._open:
            try:
                self._inbox.get(timeout=self._patience())()
            except Empty:
                self._wait = min(self._wait * 2, _MOST_WAIT_SECONDS)
            self._produce()
            self._writer.serve()
            self._ask_ends()
            self._ends_reader.serve()
            self._settle()

    def _patience(self) -> float:
        """Return how long to wait for the inbox, which is not woken by the clients' acknowledgements and log lines."""
        now = time.monotonic()
        waits = [read.deadline - now for read in self._reads] + [write.deadline - now for write in self._writes]
        if any(read.ends is None for read in self._reads):
            waits.append(self._ask_at - now)
        if self._unsent or any(write.unacknowledged for write in self._writes):
            waits.append(self._wait)
        is_at_rest = self._writer.rests and self._ends_reader.rests
        return max(min([_AT_REST_SECONDS if is_at_rest else _IDLE_SECONDS, *waits]), 0.0)

    def _write(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        timeout: float,
        *,
        read_back: bool = False,
        may_wait: Callable[[], bool] = lambda: False,
    ) -> Future[None]:
        write = _Write(Future(), time.monotonic() + timeout, tuple(records), read_back, len(records), may_wait)
        self._inbox.put(partial(self._begin_write, write))
        return write.future

    def _begin_write(self, write: _Write) -> None:
        if not self._open:
            write.future.set_exception(closed_error(self._topic))
            return
        self._writes.add(write)
        write.after = dict(self._position)
        self._unsent.extend((write, key, value) for key, value in write.records)
        self._wait = _LEAST_WAIT_SECONDS

    def _begin_read(self, read: _Read) -> None:
        if not self._open:
            read.future.set_exception(closed_error(self._topic))
            return
        self._reads.add(read)
        if not self._unreachable:
            self._ask_at = 0.0

    def _produce(self) -> None:
        while self._unsent:
            write, key, value = self._unsent[0]
            if not self._limit.lasts(self._limit.seconds):
                if write in self._writes and write.may_wait():
                    return
                self._writes.discard(write)
                _fail(write.future, write_limit_error(self._topic))
            if write not in self._writes:
                # The write has failed. If made now, it could follow a write that was made because of the failure.
                self._unsent.popleft()
                continue
            try:
                on_delivery = partial(self._delivered, write)
                self._writer.client.produce(self._topic, value=value, key=key, on_delivery=on_delivery)
            except BufferError:
                return
            except KafkaException as error:
                # For example, the record is too large. The whole write fails, or its other records would take effect
                # without this one.
                self._fail(write, error.args[0])
            else:
                self._unsent.popleft()

    def _delivered(self, write: _Write, error: KafkaError | None, message: Any) -> None:
        write.unacknowledged -= 1
        if error is not None and not is_late(error):
            self._fail(write, error)
            return
        write.late = write.late or error
        if write.late is not None:
            self._try_again(write, write.late)
            return
        self._reached()
        partition, offset = message.partition(), message.offset()
        if offset < write.after.get(partition, 0):
            self._is_replaced()
            self._writes.discard(write)
            _fail(write.future, self._late_error("did not keep a record"))
            return
        write.seen_at[partition] = max(offset + 1, write.seen_at.get(partition, 0))
        if write.read_back and partition not in self._partitions:
            self._writes.discard(write)
            _fail(write.future, unread_partition_error(self._topic))

    def _try_again(self, write: _Write, late: KafkaError) -> None:
        """Write all records again, in order, once none of them is in flight."""
        if not write.may_wait():
            self._fail(write, late)
        elif not write.unacknowledged and write in self._writes:
            write.late, write.unacknowledged = None, len(write.records)
            write.seen_at.clear()
            self._unsent.extend((write, key, value) for key, value in write.records)

    def _fail(self, write: _Write, error: KafkaError) -> None:
        self._writes.discard(write)
        if error.code() in _MISSING:
            self._is_gone()
            _fail(write.future, self._late_error("does not exist"))
            return
        _fail(write.future, refused_write_error(self._topic, error))

    def _take_fetched(self, messages: list[Any]) -> None:
        self._room.release()
        self._take(messages)

    def _take(self, messages: list[Any]) -> None:
        for message in messages:
            error = message.error()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                if message.offset() < self._position.get(message.partition(), 0):
                    self._is_replaced()
                # The position also moves past transaction markers and gaps after the last record.
                self._position[message.partition()] = message.offset() + (error is None)
                if error is None:
                    self._pass_on(message)
            else:
                self._complain(error)
                continue
            self._readable()
            self._reached()

    def _pass_on(self, message: Any) -> None:
        record = TopicRecord(
            message.partition(), message.offset(), message.key(), message.value(), message.timestamp()[1]
        )
        try:
            self._on_record(record)
        except Exception:
            logger.exception("A record of topic '%s' at offset %d could not be handled", self._topic, record.offset)

    def _ask_ends(self) -> None:
        waiting = [read for read in self._reads if read.ends is None]
        if not waiting or time.monotonic() < self._ask_at:
            return
        try:
            ends = self._offsets(self._ends_reader.client, OFFSET_END, self._partitions, _ASK_SECONDS)
        except KafkaException as error:
            if not is_transient(error.args[0]):
                self._complain(error.args[0])
            # This client fetches nothing, so it does not otherwise learn of a new leader or leader epoch.
            with suppress(KafkaException):
                self._ends_reader.client.list_topics(self._topic, timeout=_ASK_AGAIN_SECONDS)
            self._ask_at = time.monotonic() + _ASK_AGAIN_SECONDS
            return
        self._reached()
        for read in waiting:
            read.ends = ends

    def _settle(self) -> None:
        """Complete the requests that are done, and fail those that took too long."""
        now = time.monotonic()
        for write in list(self._writes):
            if not write.unacknowledged and (not write.read_back or self._is_read(write.seen_at)):
                self._writes.discard(write)
                _complete(write.future)
            elif now >= write.deadline:
                self._writes.discard(write)
                _fail(write.future, self._late_error("did not take a record"))
        for read in list(self._reads):
            if read.ends is not None and self._is_read(read.ends):
                self._reads.discard(read)
                _complete(read.future)
            elif now >= read.deadline:
                self._reads.discard(read)
                _fail(read.future, self._late_error("could not be read to its end"))

    def _late_error(self, what: str) -> ConnectError:
        if self._refusal is not None:
            return denied_error(self._topic, self._refusal, "Read")
        if (refusal := self.refusal) is not None:
            return UnavailableError(refusal)
        return late_error(self._topic, what)

    def _is_read(self, ends: Mapping[int, int]) -> bool:
        return all(self._position.get(partition, -1) >= end for partition, end in ends.items())

    def _end(self, deadline: float) -> None:
        while (self._unsent or any(write.unacknowledged for write in self._writes)) and time.monotonic() < deadline:
            self._produce()
            self._writer.client.poll(_LEAST_WAIT_SECONDS * 10)
        self._open = False
        for write in list(self._writes):
            if write.unacknowledged:
                _fail(write.future, closed_error(self._topic))
            else:
                _complete(write.future)
        for read in self._reads:
            _fail(read.future, closed_error(self._topic))
        self._writes.clear()
        self._reads.clear()

    def _report(self, error: KafkaError) -> None:
        """Called by a client whenever it is polled."""
        self._inbox.put(partial(self._complain, error))

    def _report_others(self, error: KafkaError) -> None:
        """Report errors other than lost brokers. Lost brokers are reported by only one of the three clients."""
        if not is_transient(error):
            self._report(error)

    def _complain(self, error: KafkaError) -> None:
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return  # the consumer must have a group, but never joins it
        self._note_refusal(error)
        if error.code() in _MISSING:
            self._is_gone()
        elif not is_transient(error):
            if error.code() not in self._complained:
                self._complained.add(error.code())
                logger.error("%s", denied_error(self._topic, error, "Read"))
        elif not self._unreachable and error.code() != KafkaError._TRANSPORT:
            self._unreachable = True
            logger.warning("Topic '%s' cannot be reached (%s); the worker keeps trying", self._topic, error.str())

    def _is_gone(self) -> None:
        if self._gone is None:
            self._gone = gone_text(self._topic)
            logger.error("%s", self._gone)

    def _is_replaced(self) -> None:
        if self._replaced is None:
            self._replaced = replaced_text(self._topic)
            logger.error("%s", self._replaced)

    def _readable(self) -> None:
        self._gone = None
        if self._refusal is not None:
            self._refusal = None
            self._complained.clear()
            logger.info("Topic '%s' can be read again", self._topic)

    def _note_refusal(self, error: KafkaError) -> None:
        if is_denial(error.code()) or is_login_refused(error):
            self._refusal = error

    def _reached(self) -> None:
        if self._unreachable:
            self._unreachable = False
            logger.info("Topic '%s' can be reached again", self._topic)


def _complete(future: Future[None]) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(None)


def _fail(future: Future[None], error: ConnectError) -> None:
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_exception(error)
