"""Outcomes of the records of one batch, as reported by the producer: acknowledged at an offset, or refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, filterfalse, islice, repeat
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaError

from connect.data import Constant, TimestampType
from connect.internals.chain.raw_records import EncodedBatch, RawHeaders, RawRecord
from connect.internals.delivery.submissions import Receipt, Submission

__all__ = ["BatchOutcomes", "Delivered", "Refusal", "raw_record"]

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
