"""A compacted topic that is read from its beginning to its end and on, and written to.

Crash point: what was acknowledged is on the topic and is read again after a restart; a write that was not
acknowledged yet may be there or not. Nothing is kept anywhere else.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition

from connect.errors import ConnectError, RetriableError
from worker.kafka import clients
from worker.kafka.client_kind import ClientProperties, PropertyValue

__all__ = ["CompactedTopic", "TopicRecord"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 250
_BATCHES_UNDER_WAY: Final = 2
_LOOK_UP_SECONDS: Final = 0.25
_ASK_SECONDS: Final = 2.0
_ASK_AGAIN_SECONDS: Final = 0.25
_LEAST_WAIT_SECONDS: Final = 0.001
_MOST_WAIT_SECONDS: Final = 0.1
_IDLE_SECONDS: Final = 1.0
_ISOLATION: Final = "isolation.level"

# I9: such a topic is small, and what waits in the client is bounded by 1 MiB; one record may be larger than that.
_CONSUMER: Final[Mapping[str, PropertyValue]] = {
    "enable.partition.eof": True,
    "queued.max.messages.kbytes": 1024,
    "queued.min.messages": 1000,
    "fetch.queue.backoff.ms": 2,
    "fetch.min.bytes": 1,
    # A partition that cannot be fetched for a moment is asked again soon, at most so often.
    "fetch.error.backoff.ms": 100,
}
# One request at a time keeps the order, and a record that is written twice is compacted: no producer id is needed.
_PRODUCER: Final[Mapping[str, PropertyValue]] = {
    "linger.ms": 0,
    "enable.idempotence": False,
    "max.in.flight.requests.per.connection": 1,
}
_PASSING: Final = frozenset(
    (
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    )
)


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record as it is on the topic; without a value it is a tombstone. ``timestamp`` in milliseconds since 1970."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(slots=True, eq=False)
class _Write:
    """Records that were sent together, and how far the topic has to be read to have seen them."""

    future: Future[None]
    deadline: float
    read_back: bool
    unacknowledged: int
    seen_at: dict[int, int]


@dataclass(slots=True, eq=False)
class _Read:
    """Someone waits until each partition is read up to an offset; ``None`` while the ends are not known."""

    future: Future[None]
    deadline: float
    ends: Mapping[int, int] | None = None


class CompactedTopic:
    """A topic whose records are passed on in order, from the first one, and which can be written to.

    ``on_record`` is called in the topic's own thread, and there futures are completed, in the order of what happened:
    when one is done, everything it waited for has been passed on. All methods but ``start`` and ``close`` return at
    once and may be called from any thread. While the brokers are away it goes on trying, and says so once.

    Which partitions there are is found out at the start: one that is added later is not read before the worker is
    started again, and a write that lands there fails. When the topic is deleted and made again, the new one is read
    from its beginning as soon as the client learns of it; what came from the old one was passed on and is not taken
    back, so restart the worker.

    It costs two threads here and eleven sleeping ones of the client library, some 2 MB, and a few MiB at most of
    records that were fetched and not passed on.
    """

    def __init__(
        self,
        topic: str,
        consumer: ClientProperties,
        producer: ClientProperties,
        on_record: Callable[[TopicRecord], None],
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        reading = replace(consumer, properties={**consumer.properties, **_CONSUMER})
        self._consumer = clients.consumer(reading, self._report)
        # A connection that waits for records answers nothing else for half a second, so another one asks for the ends.
        # What is committed ends with the last complete transaction; one that is under way has to be waited for.
        asking = {**reading.properties, _ISOLATION: "read_uncommitted"}
        self._ends_consumer = clients.consumer(replace(reading, properties=asking), self._report_others)
        self._producer = clients.producer(
            replace(producer, properties={**producer.properties, **_PRODUCER}), self._report_others
        )
        self._thread = threading.Thread(target=self._loop, name=f"topic-{topic}", daemon=True)
        self._fetcher = threading.Thread(target=self._fetch, name=f"topic-{topic}-fetch", daemon=True)
        self._room = threading.Semaphore(_BATCHES_UNDER_WAY)
        self._ending = threading.Event()
        # Below is what belongs to the topic's thread.
        self._open = True
        self._unreachable = False
        self._complained: set[int] = set()
        self._position: dict[int, int] = {}
        self._partitions: frozenset[int] = frozenset()
        self._unsent: deque[tuple[_Write, bytes, bytes | None]] = deque()
        self._writes: set[_Write] = set()
        self._reads: set[_Read] = set()
        self._ask_at = 0.0
        self._wait = _LEAST_WAIT_SECONDS

    def start(self, timeout: float) -> None:
        """Return when everything that was on the topic has been passed on.

        Raises :class:`~connect.errors.ConnectError` if that takes longer than ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        self._partitions = self._find_partitions(deadline)
        self._consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in self._partitions])
        self._thread.start()
        self._fetcher.start()
        try:
            self.read_to_end(max(deadline - time.monotonic(), 0.0)).result()
        except BaseException:
            self.close(0.0)
            raise

    def send(self, key: bytes, value: bytes | None, timeout: float = math.inf) -> Future[None]:
        """Write a record, or a tombstone; done when it is acknowledged.

        Fails with :class:`~connect.errors.ConnectError` when the topic is closed or the broker refuses it, with
        :class:`~connect.errors.RetriableError` after ``timeout`` seconds; it may be written later all the same.
        """
        return self._write([(key, value)], timeout, read_back=False)

    def send_all(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float = math.inf) -> Future[None]:
        """Write records in order; done when all are acknowledged. Fails as :meth:`send`."""
        return self._write(records, timeout, read_back=False)

    def write(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float = math.inf) -> Future[None]:
        """Write records in order; done when all are acknowledged and have been passed on. Fails as :meth:`send`."""
        return self._write(records, timeout, read_back=True)

    def read_to_end(self, timeout: float = math.inf) -> Future[None]:
        """Done when all that is on the topic now has been passed on. Fails as :meth:`send`."""
        read = _Read(Future(), time.monotonic() + timeout)
        self._inbox.put(partial(self._begin_read, read))
        return read.future

    def close(self, timeout: float = 5.0) -> None:
        """End, after at most so many seconds for what was sent to be acknowledged. What is open then fails."""
        self._inbox.put(partial(self._end, time.monotonic() + timeout))
        self._ending.set()
        for thread in (self._fetcher, self._thread):
            if thread.ident is not None:
                thread.join()
        self._consumer.close()
        self._ends_consumer.close()
        self._producer.purge()
        self._producer.flush(1.0)
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        """Whoever asked after the end, or without a start, learns of it."""
        self._open = False
        while True:
            try:
                self._inbox.get_nowait()()
            except Empty:
                break

    def _find_partitions(self, deadline: float) -> frozenset[int]:
        while True:
            cause: KafkaException | None = None
            try:
                wait = min(max(deadline - time.monotonic(), 0.1), _ASK_SECONDS)
                described = self._consumer.list_topics(self._topic, timeout=wait).topics[self._topic]
                if described.error is None and described.partitions:
                    return frozenset(described.partitions)
                reason = str(described.error)
            except KafkaException as error:
                cause, reason = error, str(error.args[0])
            if time.monotonic() >= deadline:
                raise ConnectError(
                    f"Topic '{self._topic}' cannot be found out about ({reason}): check bootstrap.servers and that "
                    "this principal may describe and read the topic"
                ) from cause
            time.sleep(_MOST_WAIT_SECONDS)

    def _fetch(self) -> None:
        while not self._ending.is_set():
            if not self._room.acquire(timeout=_LOOK_UP_SECONDS):
                continue
            message = self._consumer.poll(_LOOK_UP_SECONDS)
            if message is None:
                self._room.release()
            else:
                self._inbox.put(partial(self._take, [message, *self._consumer.consume(_AT_ONCE, 0)]))

    def _loop(self) -> None:
        while self._open:
            try:
                self._inbox.get(timeout=self._patience())()
            except Empty:
                self._wait = min(self._wait * 2, _MOST_WAIT_SECONDS)
            self._produce()
            self._producer.poll(0)
            self._ask_ends()
            self._ends_consumer.poll(0)
            self._settle()

    def _patience(self) -> float:
        """How long to wait for the inbox: acknowledgements, and what the clients have to log, do not wake it."""
        now = time.monotonic()
        waits = [read.deadline - now for read in self._reads] + [write.deadline - now for write in self._writes]
        if any(read.ends is None for read in self._reads):
            waits.append(self._ask_at - now)
        if self._unsent or any(write.unacknowledged for write in self._writes):
            waits.append(self._wait)
        return max(min([_IDLE_SECONDS, *waits]), 0.0)

    def _write(self, records: Sequence[tuple[bytes, bytes | None]], timeout: float, *, read_back: bool) -> Future[None]:
        write = _Write(Future(), time.monotonic() + timeout, read_back, len(records), {})
        self._inbox.put(partial(self._begin_write, write, list(records)))
        return write.future

    def _begin_write(self, write: _Write, records: list[tuple[bytes, bytes | None]]) -> None:
        if not self._open:
            write.future.set_exception(self._closed())
            return
        self._writes.add(write)
        self._unsent.extend((write, key, value) for key, value in records)
        self._wait = _LEAST_WAIT_SECONDS

    def _begin_read(self, read: _Read) -> None:
        if not self._open:
            read.future.set_exception(self._closed())
            return
        self._reads.add(read)
        if not self._unreachable:
            self._ask_at = 0.0

    def _produce(self) -> None:
        while self._unsent:
            write, key, value = self._unsent[0]
            try:
                self._producer.produce(self._topic, value=value, key=key, on_delivery=partial(self._delivered, write))
            except BufferError:
                return
            except KafkaException as error:
                self._fail(write, error.args[0])
            self._unsent.popleft()

    def _delivered(self, write: _Write, error: KafkaError | None, message: Any) -> None:
        write.unacknowledged -= 1
        if error is not None:
            self._fail(write, error)
            return
        self._reached()
        partition, offset = message.partition(), message.offset()
        write.seen_at[partition] = max(offset + 1, write.seen_at.get(partition, 0))
        if write.read_back and partition not in self._partitions:
            self._writes.discard(write)
            _fail(
                write.future,
                ConnectError(
                    f"Topic '{self._topic}' has got more partitions since this worker was started; restart the worker"
                ),
            )

    def _fail(self, write: _Write, error: KafkaError) -> None:
        self._writes.discard(write)
        kind = RetriableError if _passes(error) else ConnectError
        _fail(write.future, kind(f"Topic '{self._topic}' could not be written to: {error.str()}"))

    def _take(self, messages: list[Any]) -> None:
        self._room.release()
        for message in messages:
            error = message.error()
            if error is None:
                self._position[message.partition()] = message.offset() + 1
                self._pass_on(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                # Tells of markers of transactions and of gaps behind the last record, too.
                self._position[message.partition()] = message.offset()
            else:
                self._complain(error)
                continue
            self._reached()

    def _pass_on(self, message: Any) -> None:
        record = TopicRecord(
            message.partition(), message.offset(), message.key(), message.value(), message.timestamp()[1]
        )
        try:
            self._on_record(record)
        except Exception:
            logger.exception("A record of topic '%s' at offset %d was not understood", self._topic, record.offset)

    def _ask_ends(self) -> None:
        asking = [read for read in self._reads if read.ends is None]
        if not asking or time.monotonic() < self._ask_at:
            return
        try:
            found = self._ends_consumer.offsets_for_times(
                [TopicPartition(self._topic, number, OFFSET_END) for number in self._partitions], timeout=_ASK_SECONDS
            )
            refused = next((item.error for item in found if item.error is not None), None)
        except KafkaException as error:
            refused = error.args[0]
        if refused is not None:
            if not _passes(refused):
                self._complain(refused)
            self._ask_at = time.monotonic() + _ASK_AGAIN_SECONDS
            return
        self._reached()
        for read in asking:
            read.ends = {item.partition: item.offset for item in found}

    def _settle(self) -> None:
        """Complete what has come about, and fail what took too long."""
        now = time.monotonic()
        for write in list(self._writes):
            if not write.unacknowledged and (not write.read_back or self._is_read(write.seen_at)):
                self._writes.discard(write)
                _complete(write.future)
            elif now >= write.deadline:
                self._writes.discard(write)
                _fail(write.future, self._late("did not take a record"))
        for read in list(self._reads):
            if read.ends is not None and self._is_read(read.ends):
                self._reads.discard(read)
                _complete(read.future)
            elif now >= read.deadline:
                self._reads.discard(read)
                _fail(read.future, self._late("could not be read to its end"))

    def _is_read(self, ends: Mapping[int, int]) -> bool:
        return all(self._position.get(partition, -1) >= end for partition, end in ends.items())

    def _end(self, deadline: float) -> None:
        while (self._unsent or any(write.unacknowledged for write in self._writes)) and time.monotonic() < deadline:
            self._produce()
            self._producer.poll(_LEAST_WAIT_SECONDS * 10)
        self._open = False
        for write in list(self._writes):
            if write.unacknowledged:
                _fail(write.future, self._closed())
            else:
                _complete(write.future)
        for read in self._reads:
            _fail(read.future, self._closed())
        self._writes.clear()
        self._reads.clear()

    def _closed(self) -> ConnectError:
        return ConnectError(f"Topic '{self._topic}' is closed here: the worker is stopping")

    def _late(self, what: str) -> RetriableError:
        return RetriableError(f"Topic '{self._topic}' {what} in time; are its brokers up and can they be reached?")

    def _report(self, error: KafkaError) -> None:
        """Called by a client wherever it is polled."""
        self._inbox.put(partial(self._complain, error))

    def _report_others(self, error: KafkaError) -> None:
        """Of three clients that lose the brokers one tells."""
        if not _passes(error):
            self._report(error)

    def _complain(self, error: KafkaError) -> None:
        if not _passes(error):
            if error.code() not in self._complained:
                self._complained.add(error.code())
                clients.log_error(error)
        elif not self._unreachable and error.code() != KafkaError._TRANSPORT:
            self._unreachable = True
            logger.warning("Topic '%s' cannot be reached (%s); it is tried on", self._topic, error.str())

    def _reached(self) -> None:
        if self._unreachable:
            self._unreachable = False
            logger.info("Topic '%s' can be reached again", self._topic)


def _passes(error: KafkaError) -> bool:
    return not error.fatal() and (error.retriable() or error.code() in _PASSING)


def _complete(future: Future[None]) -> None:
    if future.set_running_or_notify_cancel():
        future.set_result(None)


def _fail(future: Future[None], error: ConnectError) -> None:
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_exception(error)
