"""Statistics of librdkafka clients, under the names that Java's clients use."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

__all__ = [
    "CONSUMER",
    "MOST_PARTITIONS",
    "PRODUCER",
    "ClientStatistics",
    "TakeStatistics",
    "client_statistics",
    "reading",
]

CONSUMER: Final = "consumer"
PRODUCER: Final = "producer"
MOST_PARTITIONS: Final = 200
"""The number of partitions whose lag a client reports; each is a separate time series."""


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """The statistics of one client: its values, and the lag of each topic partition that it consumes."""

    kind: str
    client_id: str
    values: dict[str, float]
    lags: list[tuple[str, int, int]]


TakeStatistics = Callable[[ClientStatistics], None]


def reading(kind: str, take: TakeStatistics) -> Callable[[str], None]:
    """Return a callback for librdkafka that parses statistics and passes them to ``take``."""
    return lambda text: take(client_statistics(kind, orjson.loads(text)))


def client_statistics(kind: str, document: Mapping[str, Any]) -> ClientStatistics:
    """Parse a statistics document of librdkafka."""
    brokers = [broker for broker in document.get("brokers", {}).values() if broker.get("nodeid", -1) >= 0]
    values = {
        "connection-count": float(sum(broker.get("state") in ("UP", "UPDATE") for broker in brokers)),
        "connection-creation-total": _sum(brokers, "connects"),
        "connection-close-total": _sum(brokers, "disconnects"),
        "outgoing-byte-total": float(document.get("tx_bytes", 0)),
        "incoming-byte-total": float(document.get("rx_bytes", 0)),
        "request-total": float(document.get("tx", 0)),
        "response-total": float(document.get("rx", 0)),
        "requests-in-flight": _sum(brokers, "waitresp_cnt"),
        **_latency(brokers),
        **(_of_producer(document, brokers) if kind == PRODUCER else _of_consumer(document)),
    }
    return ClientStatistics(
        kind, str(document.get("client_id", "")), values, _lags(document) if kind == CONSUMER else []
    )


def _of_producer(document: Mapping[str, Any], brokers: list[Mapping[str, Any]]) -> dict[str, float]:
    return {
        "record-send-total": float(document.get("txmsgs", 0)),
        "byte-total": float(document.get("txmsg_bytes", 0)),
        "record-error-total": _sum(brokers, "txerrs"),
        "record-retry-total": _sum(brokers, "txretries"),
        "buffer-total-bytes": float(document.get("msg_size_max", 0)),
        "buffer-available-bytes": float(document.get("msg_size_max", 0) - document.get("msg_size", 0)),
        "record-queue-count": float(document.get("msg_cnt", 0)),
    }


def _of_consumer(document: Mapping[str, Any]) -> dict[str, float]:
    group = document.get("cgrp", {})
    lags = _lags(document)
    return {
        "records-consumed-total": float(document.get("rxmsgs", 0)),
        "bytes-consumed-total": float(document.get("rxmsg_bytes", 0)),
        "assigned-partitions": float(group.get("assignment_size", 0)),
        "rebalance-total": float(group.get("rebalance_cnt", 0)),
        "partition-lags-left-out": float(max(0, _partitions(document) - len(lags))),
        **({"records-lag-max": float(max(lag for *_, lag in lags))} if lags else {}),
    }


def _latency(brokers: list[Mapping[str, Any]]) -> dict[str, float]:
    """Return the brokers' response times in the last interval: average and maximum, in ms."""
    times = [broker["rtt"] for broker in brokers if broker.get("rtt", {}).get("cnt", 0)]
    if not times:
        return {}
    count = sum(time["cnt"] for time in times)
    return {
        "request-latency-avg": sum(time["avg"] * time["cnt"] for time in times) / count / 1000,
        "request-latency-max": max(time["max"] for time in times) / 1000,
    }


def _lags(document: Mapping[str, Any]) -> list[tuple[str, int, int]]:
    """Return the known lags; only the greatest ones if there are many."""
    found = [
        (topic, entry["partition"], entry["consumer_lag"])
        for topic, of_topic in document.get("topics", {}).items()
        for entry in of_topic.get("partitions", {}).values()
        if entry.get("partition", -1) >= 0 and entry.get("consumer_lag", -1) >= 0
    ]
    if len(found) <= MOST_PARTITIONS:
        return found
    return heapq.nlargest(MOST_PARTITIONS, found, key=lambda item: item[2])


def _partitions(document: Mapping[str, Any]) -> int:
    return sum(
        entry.get("partition", -1) >= 0 and entry.get("consumer_lag", -1) >= 0
        for of_topic in document.get("topics", {}).values()
        for entry in of_topic.get("partitions", {}).values()
    )


def _sum(brokers: list[Mapping[str, Any]], key: str) -> float:
    return float(sum(broker.get(key, 0) for broker in brokers))
