"""What becomes of the records of a batch, with a producer that holds records back until it is polled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from connect.data import Constant
from connect.internals.chain.raw_records import EncodedBatch
from connect.internals.delivery.delivery import Delivery
from connect.internals.delivery.submissions import Refusal, SentRecords, Submission, raw_record

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


@dataclass
class HoldingProducer:
    """Takes records of at most ``most`` bytes, and writes them in order when it is polled, but those of ``refused``.

    Holds ``room`` records.
    """

    most: int = 100
    room: int = 100
    refused: frozenset[bytes] = frozenset()
    held: deque[tuple[Any, ...]] = field(default_factory=deque)
    callbacks: list[Callable[..., None]] = field(default_factory=list)
    end: int = 50

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int, told: Any, *_: Any) -> None:
        if len(value) > self.most:
            raise KafkaException(TOO_LARGE)
        if len(self.held) == self.room:
            raise BufferError
        self.held.append((topic, value, key, partition, told))
        self.callbacks.append(told)

    def poll(self, _seconds: float) -> int:
        while self.held:
            topic, value, key, partition, told = self.held.popleft()
            if value in self.refused:
                told(TOO_LARGE, Message(topic=topic, value=value, key=key, partition=partition))
            else:
                told(None, Message(topic=topic, partition=partition, offset=self.end))
                self.end += 1
        return 0

    def flush(self, seconds: float) -> int:
        return self.poll(seconds)


class AnySize:
    def of(self, _topic: str) -> None:
        return None

    def forget(self, _topic: str) -> None:
        return None


def batch(values: Sequence[bytes], partitions: Sequence[int | None], timestamps: Sequence[int | None]) -> EncodedBatch:
    length = len(values)
    headers = [(("place", b"%d" % place),) for place in range(length)]
    offsets = [{"offset": place} for place in range(length)]
    return EncodedBatch("t", Constant(b"k", length), values, partitions, timestamps, headers, offsets)


def delivered(
    producer: HoldingProducer, records: EncodedBatch, *, keeps_order: bool
) -> tuple[Submission, list[Refusal]]:
    refusals: list[Refusal] = []
    submission = Submission({}, {}, len(records), receipts=[])
    delivery = Delivery(
        producer,  # type: ignore[arg-type]
        refusals.append,
        lambda: False,
        AnySize(),
        SentRecords(),
        resends=False,
        keeps_order=keeps_order,
    )
    delivery.send(records, submission)
    delivery.serve()
    return submission, refusals


def places(submission: Submission) -> list[int | None]:
    return [offset for receipt in submission.receipts or () for offset in receipt.offsets]


@pytest.mark.parametrize("keeps_order", [True, False])
@pytest.mark.parametrize("room", [1, 2, 100])
def test_each_record_has_its_offset_and_a_refusal_its_record(room: int, keeps_order: bool) -> None:
    producer = HoldingProducer(most=5, room=room, refused=frozenset({b"never"}))
    values = [b"a", b"too large", b"b", b"never", b"never", b"c", b"much too large"]
    records = batch(values, Constant(3, 7), [10, 11, 12, 13, None, 15, 16])
    submission, refusals = delivered(producer, records, keeps_order=keeps_order)
    assert submission.remaining == 0
    assert places(submission) == [50, None, 51, None, None, 52, None]
    found = sorted(([*one.record.headers], one.record.value, one.record.timestamp, one.sent) for one in refusals)
    assert found == [
        ([("place", b"1")], b"too large", 11, False),
        ([("place", b"3")], b"never", 13, True),
        ([("place", b"4")], b"never", None, True),
        ([("place", b"6")], b"much too large", 16, False),
    ]
    assert {(one.record.partition, one.record.key) for one in refusals} == {(3, b"k")}


def test_records_for_one_partition_share_a_callback_where_their_order_is_kept() -> None:
    producer = HoldingProducer()
    records = batch([b"a", b"b", b"c"], Constant(0, 3), [10, 11, 12])
    delivered(producer, records, keeps_order=True)
    delivered(producer, records, keeps_order=False)
    assert [len(set(map(id, part))) for part in (producer.callbacks[:3], producer.callbacks[3:])] == [1, 3]


@pytest.mark.parametrize("partitions", [[0, 1, 0], Constant(None, 3)])
def test_records_for_several_partitions_have_each_their_own(partitions: Sequence[int | None]) -> None:
    producer = HoldingProducer()
    delivered(producer, batch([b"a", b"b", b"c"], partitions, Constant(None, 3)), keeps_order=True)
    assert len(set(map(id, producer.callbacks))) == 3


def test_a_timestamp_before_1970_is_refused_before_it_is_sent() -> None:
    records = batch([b"a", b"b", b"c"], Constant(0, 3), [10, -2, -1])
    submission, refusals = delivered(HoldingProducer(), records, keeps_order=True)
    assert places(submission) == [50, None, 51]
    assert [(one.record.value, one.error.code()) for one in refusals] == [(b"b", KafkaError.INVALID_TIMESTAMP)]


@pytest.mark.parametrize(
    ("code", "key", "told"),
    [
        (KafkaError.INVALID_RECORD, None, "The key of the record is null, and if topic t is compacted"),
        (KafkaError._INVALID_DIFFERENT_RECORD, b"k", "Perhaps the key of another record of its batch is null, and if"),
        (KafkaError.INVALID_RECORD, b"k", None),
        (KafkaError.MSG_SIZE_TOO_LARGE, None, "Raise producer.override.max.request.size"),
        (KafkaError.INVALID_TIMESTAMP, None, None),
        (KafkaError.TOPIC_EXCEPTION, None, "Topic names consist of at most 249 letters"),
    ],
)
def test_a_refusal_says_what_to_do(code: int, key: bytes | None, told: str | None) -> None:
    refusal = Refusal(Submission({}, {}, 1), raw_record("t", b"v", key, 0), KafkaError(code), sent=True)
    assert refusal.remedy.startswith(f" {told}") if told else refusal.remedy == ""
