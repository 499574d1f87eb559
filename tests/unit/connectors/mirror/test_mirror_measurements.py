"""The numbers of each partition of a mirror, with times that the test sets."""

from __future__ import annotations

from connect.data import Schema, SourceBatch, TopicPartition, ValueColumn
from connect.internals.kafka.clients.statistics import ClientStatistics
from connectors.mirror.checkpoint.measurements import CheckpointLatencies
from connectors.mirror.source.measurements import MirrorMeasurements, Position, Recent
from connectors.mirror.source_offsets import RecordOffsets

ORDERS = TopicPartition("orders", 1)
LABELS = (("source", "A"), ("target", "B"))
CLIENT = "A->B|m-0|replication-consumer"


def _batch(offsets: list[int], times: list[int]) -> SourceBatch:
    values = ValueColumn([b"x"] * len(offsets), Schema.bytes(optional=True))
    return SourceBatch.of(
        "A.orders", values, source_partition={}, source_offsets=RecordOffsets(offsets), timestamps=times
    )


def _told(numbers: MirrorMeasurements, standing: Position, now: float, gaps: int = 0) -> dict[str, float]:
    found = [
        each
        for each in numbers.measurements({ORDERS: standing}, {ORDERS: gaps}, now)
        if not each.name.startswith("mirror_consumer_")
    ]
    assert {each.labels for each in found} == {(*LABELS, ("topic", "A.orders"), ("partition", "1"))}
    return {each.name.removeprefix("mirror_"): each.value for each in found}


def test_a_partition_tells_how_far_it_is_and_how_long_records_take() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"}, CLIENT)
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


def test_the_last_record_tells_its_age_and_its_latency_however_long_ago() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"}, CLIENT)
    assert "record_age_seconds" not in _told(numbers, Position(4, 4), 99.0)
    numbers.read(ORDERS, _batch([4, 5], [97_000, 99_000]), 20, 100.0)
    numbers.read(ORDERS, _batch([6], [98_500]), 10, 100.0)
    told = _told(numbers, Position(7, 7), 100.0)
    assert told["record_age_seconds"] == 1.5
    assert "replication_latency_seconds" not in told
    numbers.acknowledged(ORDERS, 5, 101.0)
    assert _told(numbers, Position(7, 7), 101.0)["replication_latency_seconds"] == 2.0
    numbers.acknowledged(ORDERS, 6, 101.0)
    told = _told(numbers, Position(7, 7), 500.0)
    assert (told["record_age_seconds"], told["replication_latency_seconds"]) == (1.5, 2.5)
    assert "record_age_avg_seconds" not in told


def test_the_consumer_tells_how_far_it_is_behind_and_its_statistics() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"}, CLIENT)
    numbers.take_statistics(ClientStatistics("consumer", "secret|x", {"incoming-byte-total": 7.0, "other": 1.0}, []))
    found = {
        each.name: (each.value, dict(each.labels))
        for each in numbers.measurements({ORDERS: Position(7, 9)}, {}, 100.0)
        if each.name.startswith("mirror_consumer_")
    }
    assert found == {
        "mirror_consumer_records_lag": (2, {"client_id": CLIENT, "topic": "orders", "partition": "1"}),
        "mirror_consumer_incoming_byte_total": (7.0, {"client_id": CLIENT}),
    }


def test_a_checkpoint_tells_how_long_it_took() -> None:
    latencies = CheckpointLatencies("A", "B")
    place = {"partition": 3, "topic": "A.orders", "group": "g"}
    latencies.acknowledged(place, 100.0, 101.0)
    latencies.acknowledged(place, 102.0, 105.0)
    latencies.acknowledged({**place, "group": "h"}, 105.0, 104.0)
    labels = (*LABELS, ("group", "g"), ("topic", "A.orders"), ("partition", "3"))
    found = {(each.name, dict(each.labels)["group"]): each.value for each in latencies.measurements(105.0)}
    assert {each.labels for each in latencies.measurements(105.0) if dict(each.labels)["group"] == "g"} == {labels}
    latency = "mirror_checkpoint_latency"
    assert found == {
        **{
            (f"{latency}{kind}_seconds", "g"): value for kind, value in (("", 3), ("_min", 1), ("_max", 3), ("_avg", 2))
        },
        **{(f"{latency}{kind}_seconds", "h"): 0.0 for kind in ("", "_min", "_max", "_avg")},
    }
    assert {name for name, group in found if group == "g"} == {each.name for each in latencies.measurements(105.0)}
    assert [each.name for each in latencies.measurements(900.0)] == [f"{latency}_seconds"] * 2
    for number in range(500):
        latencies.acknowledged({**place, "partition": number}, 0.0, float(number))
    told = {dict(each.labels)["partition"] for each in latencies.measurements(9_000.0)}
    assert told == {str(number) for number in range(300, 500)}


def test_the_lag_in_seconds_begins_when_a_partition_was_caught_up_last() -> None:
    numbers = MirrorMeasurements(LABELS, {"orders": "A.orders"}, CLIENT)
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
    numbers = MirrorMeasurements(LABELS, {}, CLIENT)
    places = {TopicPartition("t", number): Position(0, number) for number in range(500)}
    told = {dict(each.labels).get("partition") for each in numbers.measurements(places, {}, 1.0)}
    assert told == {str(number) for number in range(300, 500)}
