"""Source offsets that may be committed: those whose records, and all records before them, Kafka has acknowledged.

The outcomes of the records of a batch, as its callbacks report them, decide that.

Submissions are queued by source partition, so that a stuck one holds back only the offsets of its own partition
(invariant I1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, filterfalse, islice, pairwise, repeat
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError

from connect.data import Constant, Offset, SourceRecord, TimestampType
from connect.internals.chain.raw_records import EncodedBatch, RawHeaders, RawRecord

__all__ = [
    "BatchOutcomes",
    "Delivered",
    "Receipt",
    "Refusal",
    "SentRecords",
    "Submission",
    "SubmittedRecords",
    "raw_record",
]

_TIDY: Final = 1000


@dataclass(slots=True, eq=False)
class Receipt:
    """The offsets of a batch's records on their topic, as far as they are acknowledged.

    ``reported`` lists them in the order of the records, except those at the indices ``unsent``, of which no report
    comes.
    """

    topic: str
    source_offsets: Sequence[Offset]
    reported: list[int | None] = field(default_factory=list)
    unsent: Collection[int] = ()

    @property
    def offsets(self) -> Sequence[int | None]:
        """The offset of each record; ``None`` if unknown, as for a refused record."""
        if not self.unsent:
            return self.reported
        reported = iter(self.reported)
        return [None if place in self.unsent else next(reported, None) for place in range(len(self.source_offsets))]


@dataclass(slots=True, eq=False)
class Submission:
    """Consecutive records of one source partition: how many are not yet acknowledged, and the offset after them.

    ``records`` is set for a task that wants to know which records were acknowledged, ``receipts`` for one that wants
    their offsets; ``born`` is the time of the first record, in seconds since 1970.
    """

    partition: Offset
    offset: Offset
    remaining: int
    records: Sequence[SourceRecord] = ()
    born: float = 0.0
    receipts: list[Receipt] | None = None

    @property
    def is_reported(self) -> bool:
        """Whether the task is notified when all records are acknowledged."""
        return bool(self.records) or self.receipts is not None


class SubmittedRecords:
    """The submissions of a task that are not yet committed. Used by the task's thread only.

    Of consecutive acknowledged submissions only the newest is kept (invariant I9): between two commits there may be
    millions, if a source alternates between partitions or returns records one by one.
    """

    def __init__(self) -> None:
        self._queues: dict[bytes, deque[Submission]] = {}
        self._until_tidy = _TIDY

    def __len__(self) -> int:
        """Return the number of submissions kept."""
        return sum(map(len, self._queues.values()))

    def submit(self, key: bytes, submission: Submission) -> None:
        """Register records that are about to be sent; ``key`` identifies their source partition."""
        self._queues.setdefault(key, deque()).append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def committable(self) -> dict[bytes, Submission]:
        """Remove and return the newest submission of each source partition up to which everything is acknowledged."""
        ready: dict[bytes, Submission] = {}
        for key, queue in list(self._queues.items()):
            while queue and queue[0].remaining == 0:
                ready[key] = queue.popleft()
            if not queue:
                del self._queues[key]
        return ready

    def _tidy(self) -> None:
        """Drop submissions superseded by an acknowledged successor. The more remain, the later this is done again."""
        for key, queue in self._queues.items():
            reported = [one for one, after in pairwise(queue) if one.remaining or after.remaining]
            self._queues[key] = deque([*reported, queue[-1]])
        self._until_tidy = max(_TIDY, len(self))


class SentRecords:
    """Counts the acknowledged and in-flight records of a task. Used by the task's thread only.

    Each submission counts down its own acknowledgements, so nothing needs to be done here for each record.
    """

    def __init__(self) -> None:
        self._handed_over = 0
        self._given_up = 0
        self._open: deque[Submission] = deque()
        self._completed: list[float] = []
        self._until_tidy = _TIDY

    def begin(self, submission: Submission) -> None:
        """Register a submission whose records are about to be sent."""
        self._handed_over += submission.remaining
        if submission.remaining:
            self._open.append(submission)
        self._until_tidy -= 1
        if not self._until_tidy:
            self._tidy()

    def give_up(self) -> None:
        """Stop waiting for a record that Kafka refused and that is skipped."""
        self._given_up += 1

    def discard(self) -> None:
        """Forget the records in flight, which are discarded with their transaction."""
        self._given_up += self.under_way()
        self._open.clear()

    def completed(self) -> list[float]:
        """Return the ``born`` times of the submissions completely acknowledged since the last call.

        A submission acknowledged before an older one may be reported later.
        """
        while self._open and not self._open[0].remaining:
            self._completed.append(self._open.popleft().born)
        completed, self._completed = self._completed, []
        return completed

    def under_way(self) -> int:
        """Return how many records are in flight: handed to the producer, and neither acknowledged nor given up."""
        self._tidy()
        return sum(submission.remaining for submission in self._open)

    def acknowledged(self) -> int:
        """Return how many records Kafka has acknowledged so far."""
        return self._handed_over - self._given_up - self.under_way()

    def _tidy(self) -> None:
        """Drop completed submissions. The more remain, the later this is done again (invariant I9)."""
        self._completed += [submission.born for submission in self._open if not submission.remaining]
        self._open = deque(submission for submission in self._open if submission.remaining)
        self._until_tidy = max(_TIDY, len(self._open))


Delivered: TypeAlias = Callable[[KafkaError | None, Any], None]
"""What the client calls with what became of a record."""
_NO_OFFSET: Final = -1
_OF_THE_RECORD: Final = frozenset(
    {
        KafkaError._BAD_MSG,
        KafkaError._INVALID_ARG,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.POLICY_VIOLATION,
        KafkaError.RECORD_LIST_TOO_LARGE,
    }
)
_OF_THE_BATCH: Final = frozenset(
    {
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)
"""Errors that a broker reports for all records of a batch though one is at fault."""
_LARGER: Final = " Raise producer.override.max.request.size and the topic's max.message.bytes."
_TOPIC_NAME: Final = (
    " Topic names consist of at most 249 letters, digits, '.', '_' and '-': rename the topic with the transformation "
    "RegexRouter, or leave out what goes to it."
)
_COMPACTED: Final = (
    "and if topic {topic} is compacted (cleanup.policy=compact), it takes only records with a key: give them one, for "
    "example with the transformation ValueToKey, or set the topic's cleanup.policy to delete."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that Kafka refused: its bytes, the error, and whether it had been sent to a broker."""

    submission: Submission
    record: RawRecord
    error: KafkaError
    sent: bool

    @property
    def is_of_record(self) -> bool:
        """Whether the record itself is at fault, and not the topic, the producer or its rights."""
        return not self.error.fatal() and self.error.code() in _OF_THE_RECORD

    @property
    def may_be_of_another(self) -> bool:
        """Whether the broker may have refused it for another record of the same batch, or for the batch's size."""
        code = self.error.code()
        is_alone = code == KafkaError.INVALID_RECORD and self.record.key is None
        return self.sent and code in _OF_THE_BATCH and not is_alone

    @property
    def remedy(self) -> str:
        """What may be done about it, as sentences after the client's text; empty if that says all."""
        topic, code = self.record.topic, self.error.code()
        if code == KafkaError.MSG_SIZE_TOO_LARGE:
            return _LARGER
        if code == KafkaError.TOPIC_EXCEPTION:
            return _TOPIC_NAME
        if code == KafkaError.INVALID_RECORD and self.record.key is None:
            return f" The key of the record is null, {_COMPACTED.format(topic=topic)}"
        if code == KafkaError._INVALID_DIFFERENT_RECORD:
            return f" Perhaps the key of another record of its batch is null, {_COMPACTED.format(topic=topic)}"
        return ""


class BatchOutcomes:
    """Collects the outcomes of a batch: each record decrements ``submission.remaining`` or is added to ``refused``.

    ``timestamps`` are those passed to the client. Used by the thread that polls the producer.
    """

    __slots__ = ("_headers", "_length", "_receipt", "_refused", "_submission", "_timestamps", "_unsent")

    def __init__(
        self, batch: EncodedBatch, timestamps: Sequence[int], submission: Submission, refused: deque[Refusal]
    ) -> None:
        self._length = len(batch)
        self._timestamps = timestamps
        self._headers = batch.headers
        self._submission = submission
        self._refused = refused
        self._unsent: set[int] = set()
        self._receipt: Receipt | None = None
        if submission.receipts is not None:
            self._receipt = Receipt(batch.topic, batch.source_offsets)
            submission.receipts.append(self._receipt)

    def not_sent(self, place: int) -> None:
        """Note that no callback will come for the record at ``place``, which the client itself refused."""
        self._unsent.add(place)

    def callbacks(self, *, in_order: bool) -> Iterable[Delivered]:
        """Return the callback of each record; ``in_order`` means that they are called in the order of the records.

        A single callback for all of them costs a third of one for each.
        """
        if in_order:
            return repeat(self._delivered_next())
        alike = isinstance(self._timestamps, Constant) and isinstance(self._headers, Constant)
        if alike and self._receipt is None:
            return repeat(self._delivered_any())
        offsets: list[int | None] | None = None
        if self._receipt is not None:
            offsets = self._receipt.reported = [None] * self._length
        return map(partial, repeat(self._delivered), repeat(offsets), range(self._length))

    # Two functions in functions, and no methods: they run for each record.

    def _delivered_next(self) -> Delivered:
        """Handle the outcomes of records that are reported in order."""
        submission, unsent = self._submission, self._unsent
        offsets: list[int | None] = []
        if self._receipt is not None:
            self._receipt.reported, self._receipt.unsent = offsets, unsent
        places = filterfalse(unsent.__contains__, count())
        passed = 0

        def delivered(error: KafkaError | None, message: Any) -> None:
            nonlocal passed
            if error is None:
                offsets.append(message.offset())
                submission.remaining -= 1
                return
            place = next(islice(places, len(offsets) - passed, None))
            offsets.append(None)
            passed = len(offsets)
            self._refuse(place, error, message)

        return delivered

    def _delivered_any(self) -> Delivered:
        """Handle the outcomes of records that do not differ in what the client does not report."""
        submission = self._submission

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                submission.remaining -= 1
            else:
                self._refuse(0, error, message)

        return delivered

    def _delivered(self, offsets: list[int | None] | None, place: int, error: KafkaError | None, message: Any) -> None:
        if error is None:
            if offsets is not None:
                offsets[place] = message.offset()
            self._submission.remaining -= 1
        else:
            self._refuse(place, error, message)

    def _refuse(self, place: int, error: KafkaError, message: Any) -> None:
        # The client does not tell what the timestamp and headers were.
        where = message.topic(), message.value(), message.key(), message.partition()
        record = raw_record(*where, timestamp=self._timestamps[place], headers=self._headers[place])
        self._refused.append(Refusal(self._submission, record, error, sent=True))


def raw_record(
    topic: str,
    value: bytes | None,
    key: bytes | None,
    partition: int,
    _delivered: object = None,
    _callback: object = None,
    timestamp: int = 0,
    headers: RawHeaders | None = None,
) -> RawRecord:
    """Make a record from the arguments with which it was to be produced."""
    kind = TimestampType.CREATE_TIME.value
    return RawRecord(topic, partition, _NO_OFFSET, timestamp or None, kind, key, value, headers or ())
