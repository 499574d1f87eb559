"""The Kafka Connect metrics that are served: their groups and descriptions.

A group is a ``type`` of Java's MBeans. Metrics that a task reports but that are not listed here are not served, so that
a task cannot add series (invariant I9).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

__all__ = ["ERRORS", "TASK_METRICS", "Dialect", "Group", "Metric"]


class Dialect(Enum):
    """The names of metrics, by the kind of dashboard that uses them."""

    STRIMZI = "strimzi"
    CONFLUENT = "confluent"


class Group(Enum):
    """A group of metrics: the prefix of its names in each dialect."""

    WORKER = ("kafka_connect_worker", "kafka_connect_connect_worker_metrics")
    REBALANCE = ("kafka_connect_worker_rebalance", "kafka_connect_connect_worker_rebalance_metrics")
    CONNECTOR = ("kafka_connect_connector", "kafka_connect_connector_metrics")
    TASK = ("kafka_connect_connector_task", "kafka_connect_connector_task_metrics")
    SOURCE = ("kafka_connect_source_task", "kafka_connect_source_task_metrics")
    SINK = ("kafka_connect_sink_task", "kafka_connect_sink_task_metrics")
    ERROR = ("kafka_connect_task_error", "kafka_connect_task_error_metrics")
    COORDINATOR = ("kafka_connect_coordinator", "kafka_connect_connect_coordinator_metrics")
    CONNECT = ("kafka_connect", "kafka_connect_connect_metrics")
    PRODUCER = ("kafka_producer", "kafka_producer_producer_metrics")
    CONSUMER = ("kafka_consumer", "kafka_consumer_consumer_metrics")
    FETCH = ("kafka_consumer_fetch_manager", "kafka_consumer_consumer_fetch_manager_metrics")
    CONSUMER_COORDINATOR = ("kafka_consumer_coordinator", "kafka_consumer_consumer_coordinator_metrics")
    ADMIN = ("kafka_admin_client", "kafka_admin_client_admin_client_metrics")

    def named(self, dialect: Dialect, attribute: str) -> str:
        """Return the name of one of the group's metrics, which Java calls ``attribute``."""
        prefix = self.value[0] if dialect is Dialect.STRIMZI else self.value[1]
        return f"{prefix}_{attribute.replace('-', '_')}"


class Metric:
    """A metric of a task: its group and description."""

    __slots__ = ("group", "help")

    def __init__(self, group: Group, text: str) -> None:
        self.group = group
        self.help = text


_SOURCE: Final = {
    "source-record-poll-total": "Records that poll has given, before transformations.",
    "source-record-poll-rate": "Records a second that poll has given, over the last ten seconds.",
    "source-record-write-total": "Records that Kafka has acknowledged, after transformations.",
    "source-record-write-rate": "Records a second that Kafka has acknowledged, over the last ten seconds.",
    "source-record-active-count": "Records that were read and that Kafka has not acknowledged yet.",
    "source-record-active-count-avg": "Records under way, the mean of the last thirty seconds.",
    "source-record-active-count-max": "Records under way, the most of the last thirty seconds.",
    "poll-batch-avg-time-ms": "Milliseconds that a call of poll took, the mean of the last thirty seconds.",
    "poll-batch-max-time-ms": "Milliseconds that a call of poll took, the longest of the last thirty seconds.",
    "transaction-size-avg": "Records in a transaction, the mean; only where delivery is exactly once.",
    "transaction-size-min": "Records in the smallest transaction.",
    "transaction-size-max": "Records in the largest transaction.",
}
_SINK: Final = {
    "sink-record-read-total": "Records that were consumed, before transformations.",
    "sink-record-read-rate": "Records a second that were consumed, over the last ten seconds.",
    "sink-record-send-total": "Records that were put, after transformations.",
    "sink-record-send-rate": "Records a second that were put, over the last ten seconds.",
    "sink-record-active-count": "Records that were put and whose offsets are not committed yet.",
    "sink-record-active-count-avg": "Records put and not committed, the mean of the last thirty seconds.",
    "sink-record-active-count-max": "Records put and not committed, the most of the last thirty seconds.",
    "partition-count": "Topic partitions that are assigned to the task.",
    "put-batch-avg-time-ms": "Milliseconds that a call of put, or a load, took: the mean of the last thirty seconds.",
    "put-batch-max-time-ms": "Milliseconds that a call of put, or a load, took: the longest of thirty seconds.",
    "offset-commit-seq-no": "Commits of offsets that were begun.",
    "offset-commit-completion-total": "Commits of offsets that were completed.",
    "offset-commit-completion-rate": "Commits of offsets a second that were completed, over the last ten seconds.",
    "offset-commit-skip-total": "Commits of offsets that came too late to count. Always 0: a commit is waited for.",
    "offset-commit-skip-rate": "Commits a second that came too late to count. Always 0.",
}
_TASK: Final = {
    "batch-size-avg": "Records that one poll gave or consumed, the mean of the last thirty seconds.",
    "batch-size-max": "Records that one poll gave or consumed, the most of the last thirty seconds.",
    "offset-commit-avg-time-ms": "Milliseconds that a commit took, the mean of the last thirty seconds.",
    "offset-commit-max-time-ms": "Milliseconds that a commit took, the longest of the last thirty seconds.",
    "offset-commit-success-percentage": "Share of the commits of the last thirty seconds that succeeded, from 0 to 1.",
    "offset-commit-failure-percentage": "Share of the commits of the last thirty seconds that failed, from 0 to 1.",
    "running-ratio": "Share of its life in which the task was running, from 0 to 1.",
    "pause-ratio": "Share of its life in which the task was paused, from 0 to 1.",
}
ERRORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "total-record-failures": "Records with which the task failed.",
        "total-record-errors": "Records that could not be processed.",
        "total-records-skipped": "Records that were left out, as errors.tolerance allows.",
        "total-retries": "Tries that were repeated.",
        "total-errors-logged": "Errors of records that were logged.",
        "deadletterqueue-produce-requests": "Records that were sent to the dead letter queue.",
        "deadletterqueue-produce-failures": "Records that the dead letter queue did not take.",
        "last-error-timestamp": "When a record could not be processed last, in ms since 1970; 0 is never.",
    }
)
"""Metrics that every task has from its start, as 0, because alerts watch their growth."""

TASK_METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {
        name: Metric(group, text)
        for group, texts in (
            (Group.SOURCE, _SOURCE),
            (Group.SINK, _SINK),
            (Group.TASK, _TASK),
            (Group.ERROR, ERRORS),
        )
        for name, text in texts.items()
    }
)
"""The metrics of tasks, by Java's names."""
