"""librdkafka's statistics under the names of Java's clients."""

from __future__ import annotations

from typing import Any

from connect.internals.kafka.clients.statistics import CONSUMER, PRODUCER, client_statistics, reading

BROKERS = {
    "b:1/1": {"nodeid": 1, "state": "UP", "connects": 3, "disconnects": 2, "waitresp_cnt": 1, "txerrs": 4,
              "txretries": 5, "rtt": {"cnt": 3, "avg": 2000, "max": 9000}},
    "b:2/2": {"nodeid": 2, "state": "DOWN", "connects": 1, "disconnects": 1,
              "rtt": {"cnt": 1, "avg": 6000, "max": 6000}},
    "b:1/bootstrap": {"nodeid": -1, "state": "UP", "connects": 1},
}  # fmt: skip
TOLD: dict[str, Any] = {"client_id": "c", "tx": 10, "rx": 9, "tx_bytes": 1000, "rx_bytes": 2000, "brokers": BROKERS}


def lags(count: int) -> dict[str, Any]:
    partitions = {str(number): {"partition": number, "consumer_lag": number} for number in range(count)}
    unknown = {"-1": {"partition": -1, "consumer_lag": 5}, "x": {"partition": 7, "consumer_lag": -1}}
    return {"topics": {"t": {"partitions": {**unknown, **partitions}}}}


def test_what_all_clients_tell() -> None:
    told = client_statistics(PRODUCER, TOLD | {"txmsgs": 5, "txmsg_bytes": 50, "msg_size": 1, "msg_size_max": 4})
    assert (told.kind, told.client_id, told.lags) == (PRODUCER, "c", [])
    assert told.values == {
        "connection-count": 1,
        "connection-creation-total": 4,
        "connection-close-total": 3,
        "outgoing-byte-total": 1000,
        "incoming-byte-total": 2000,
        "request-total": 10,
        "response-total": 9,
        "requests-in-flight": 1,
        "request-latency-avg": 3.0,
        "request-latency-max": 9.0,
        "record-send-total": 5,
        "byte-total": 50,
        "record-error-total": 4,
        "record-retry-total": 5,
        "buffer-total-bytes": 4,
        "buffer-available-bytes": 3,
        "record-queue-count": 0,
    }


def test_a_consumer_tells_its_lags() -> None:
    told = client_statistics(
        CONSUMER, TOLD | {"rxmsgs": 3, "rxmsg_bytes": 30, "cgrp": {"assignment_size": 2, "rebalance_cnt": 1}} | lags(2)
    )
    assert told.lags == [("t", 0, 0), ("t", 1, 1)]
    wanted = {"records-consumed-total": 3, "assigned-partitions": 2, "records-lag-max": 1, "partition-lags-left-out": 0}
    assert {name: told.values[name] for name in wanted} == wanted


def test_of_many_partitions_the_greatest_lags_are_told() -> None:
    told = client_statistics(CONSUMER, lags(1000))
    assert sorted(lag for *_, lag in told.lags) == list(range(800, 1000))
    assert told.values["partition-lags-left-out"] == 800


def test_a_client_that_has_just_started_tells_little() -> None:
    seen = []
    reading(CONSUMER, seen.append)("{}")
    assert (seen[0].lags, seen[0].values["connection-count"]) == ([], 0)
