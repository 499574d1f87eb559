"""The numbers of each partition of a mirror, with times that the test sets."""

from __future__ import annotations

from connect.data import Schema, SourceBatch, TopicPartition, ValueColumn
from connectors.mirror.source.measurements import MirrorMeasurements, Position, Recent
from connectors.mirror.source_offsets import RecordOffsets

ORDERS = TopicPartition("orders", 1)
LABELS = (("source", "A"), ("target", "B"))


def _batch(offsets: list[int], times: list[int]) -> SourceBatch:
    values = ValueColumn([b"x"] * len(offsets), Schema.bytes(optional=True))
    return SourceBatch.of(
        "A.orders", values, source_partition={}, source_offsets=RecordOffsets(offsets), timestamps=times
    )


def _told(numbers: MirrorMeasurements, standing: Position, now: float, gaps: int = 0) -> dict[str, float]:
    found = list(numbers.measurements({ORDERS: standing}, {ORDERS: gaps}, now))
    assert {each.labels for each in found} == {(*LABELS, ("topic", "A.orders"), ("partition", "1"))}
    return {each.name.removeprefix("mirror_"): each.value for each in found}


def test_a_partition_tells_how_far_it_is_and_how_long_records_take() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"})
    numbers.read(ORDERS, _batch([4, 5], [97_000, 99_000]), 20, 100.0)
    numbers.read(ORDERS, _batch([6], [98_000]), 10, 100.0)
    told = _told(numbers, Position(7, 9), 100.0)
    assert (told["lag_records"], told["records_total"], told["bytes_total"]) == (5, 0, 30)
    assert [told[f"record_age_{kind}_seconds"] for kind in ("min", "max", "avg")] == [1.0, 3.0, 2.0]
    assert "replication_latency_avg_seconds" not in told
    numbers.acknowledged(ORDERS, 5, 101.0)
    told = _told(numbers, Position(7, 9), 110.0, gaps=2)
    assert (told["lag_records"], told["records_total"], told["gaps_total"]) == (3, 2, 2)
    assert [told[f"replication_latency_{kind}_seconds"] for kind in ("min", "max", "avg")] == [2.0, 4.0, 3.0]
    assert (told["record_rate"], told["byte_rate"]) == (0.3, 3.0)
    # It was caught up when its first record was read, as far as anybody knows.
    assert told["lag_seconds"] == 10.0


def test_the_lag_in_seconds_begins_when_a_partition_was_caught_up_last() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"})
    assert _told(numbers, Position(7, 7), 100.0)["lag_seconds"] == 0.0
    assert _told(numbers, Position(7, 8), 1000.0)["lag_seconds"] == 900.0
    assert _told(numbers, Position(8, 8), 1001.0)["lag_seconds"] == 0.0
    assert _told(numbers, Position(8, 9), 1003.0)["lag_seconds"] == 2.0


def test_what_is_long_ago_counts_no_more() -> None:
    recent = Recent(0.0)
    recent.add(1.0, 1, 5.0, 5.0, 5.0)
    recent.add(40.0, 1, 1.0, 1.0, 1.0)
    assert [recent.look(41.0)[0].most, recent.look(41.0)[1]] == [5.0, 41.0]
    assert [recent.look(71.0)[0].most, recent.look(71.0)[1]] == [1.0, 31.0]
    assert recent.look(200.0)[0].count == 0


def test_of_many_partitions_those_are_told_that_lag_most() -> None:
    numbers = MirrorMeasurements(LABELS, {})
    places = {TopicPartition("t", number): Position(0, number) for number in range(500)}
    told = {dict(each.labels)["partition"] for each in numbers.measurements(places, {}, 1.0)}
    assert told == {str(number) for number in range(300, 500)}
