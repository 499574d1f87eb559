"""The measurements of a Java task: those of Kafka Connect's runtime, of its Kafka clients and of its plugin, by JMX.

They have the names that they have there, which are also those of the tasks of Python.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping
from itertools import chain
from typing import Final

from connect.errors import ConnectError
from connect.internals.kafka.clients.statistics import CONSUMER, MOST_PARTITIONS, PRODUCER, ClientStatistics
from worker.messages import messages
from worker.runtime.control import Control
from worker.runtime.java.connect_runtime import JavaWorker, failures
from worker.runtime.java.mbeans import MBean, MBeans
from worker.runtime.java.plugin_beans import PluginBeans
from worker.runtime.metrics import OwnMeasurements, ReportedStatistics

__all__ = ["Measurements"]

_TYPES: Final = ("source-task-metrics", "sink-task-metrics", "connector-task-metrics", "task-error-metrics")
_OF_THE_WORKER: Final = frozenset({"status", "running-ratio", "pause-ratio"})
"""What the worker itself measures, of every task."""
_CONNECTIONS: Final = (
    *("connection-count", "connection-creation-total", "connection-close-total", "outgoing-byte-total"),
    *("incoming-byte-total", "request-total", "response-total", "request-latency-avg", "request-latency-max"),
)
_OF_PRODUCERS: Final = {
    "producer-metrics": (
        *_CONNECTIONS,
        *("requests-in-flight", "record-send-total", "record-error-total", "record-retry-total"),
        *("buffer-total-bytes", "buffer-available-bytes"),
    )
}
_OF_CONSUMERS: Final = {
    "consumer-metrics": _CONNECTIONS,
    "consumer-fetch-manager-metrics": ("records-consumed-total", "bytes-consumed-total", "records-lag-max"),
    "consumer-coordinator-metrics": ("assigned-partitions", "rebalance-total"),
}
_LAG: Final = "records-lag"
_LEFT_OUT: Final = "partition-lags-left-out"
_MOST_READ: Final = 1000
"""The number of partitions whose lag is read; with more of them the lag of the task is unknown."""
_SOON_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 30.0
_BEANS_SECONDS: Final = 30.0
_ANYWAY_SECONDS: Final = 300.0
"""MBeans are looked for again after so long even if their number is the same."""


class Measurements:
    """Reads and reports the measurements of one task. Used by the thread of the task.

    ``props`` are the configurations of the connector and the task, and ``is_source`` which of the two it is.
    """

    def __init__(
        self,
        java: JavaWorker,
        connector: str,
        task: int,
        control: Control,
        props: Mapping[str, str],
        *,
        is_source: bool,
    ) -> None:
        self.pause = 0.0
        """In how many seconds the next report is due: later and later while nothing changes."""
        self._java = java
        self._control = control
        self._connector = connector
        self._task = task
        self._beans = MBeans(java.jvm)
        self._plugin = PluginBeans(self._beans, connector, task, props, lambda: failures(java.jvm))
        self._own = OwnMeasurements()
        self._client = _Client(self._beans, connector, task, props, is_source=is_source)
        self._statistics = ReportedStatistics(control.send)
        self._of_connect: list[MBean] | None = None
        self._looked = 0.0
        self._count = 0
        self._has_new = False
        self._sent: dict[str, float] | None = None
        self._of_task: dict[str, float] | None = None
        self._client_due = 0.0

    def report(self) -> None:
        """Send the worker what has changed since the last report."""
        try:
            values = self._measured()
        except ConnectError:
            # MBeans have gone since they were found.
            self._forget()
            values = self._measured()
        if (lag := self._client.lag(values.get("partition-count"))) is not None:
            values["sink-record-lag"] = lag
        cpu, own = self._control.cpu(), self._own.changes()
        is_same = values == self._sent and not own
        self.pause = min(2 * self.pause, _LONGEST_SECONDS) if is_same else _SOON_SECONDS
        self._sent = values
        if is_same:
            self._control.send(messages.Unchanged(cpu, self.pause))
        else:
            self._control.send(messages.Metrics(values, own=own, cpu=cpu, pause=self.pause))

    def _measured(self) -> dict[str, float]:
        with failures(self._java.jvm):
            if (count := self._beans.count()) != self._count:
                self._count = count
                self._has_new = True
                self._client.forget()
            values = self._read()
            self._look_at_client(values)
            return values

    def _forget(self) -> None:
        self._of_connect = None
        self._client.forget()

    def _read(self) -> dict[str, float]:
        waited = time.monotonic() - self._looked
        is_due = waited >= _ANYWAY_SECONDS or (self._has_new and waited >= _BEANS_SECONDS)
        if self._of_connect is None or is_due:
            self._looked, self._has_new = time.monotonic(), False
            self._of_connect = [bean for kind in _TYPES for bean in self._beans.found(self._pattern(kind))]
            self._plugin.look()
        if time.monotonic() >= self._plugin.due:
            self._own.take(self._plugin.measurements())
        read = (self._beans.values(bean) for bean in self._of_connect)
        return {name: value for values in read for name, value in values.items() if name not in _OF_THE_WORKER}

    def _look_at_client(self, values: Mapping[str, float]) -> None:
        """Read the statistics of the client, less often while the task does nothing: each value costs a call."""
        now, of_task = time.monotonic(), dict(values)
        if of_task == self._of_task and now < self._client_due:
            return
        self._of_task, self._client_due = of_task, now + _BEANS_SECONDS
        if (seen := self._client.look()) is not None:
            self._statistics.take(seen)

    def _pattern(self, kind: str) -> str:
        return f"kafka.connect:type={kind},connector={self._beans.quoted(self._connector)},task={self._task}"


class _Client:
    """The Kafka client that moves the records of a task."""

    def __init__(self, beans: MBeans, connector: str, task: int, props: Mapping[str, str], *, is_source: bool) -> None:
        self._beans = beans
        self._kind = PRODUCER if is_source else CONSUMER
        own = f"connector-{self._kind}-{connector}-{task}"
        self._id = props.get(f"{self._kind}.override.client.id") or own
        self._lags: list[tuple[str, int, int]] = []
        self._has_joined = False
        self._found: list[MBean] | None = None
        self._of_partitions: list[MBean] | None = None

    def forget(self) -> None:
        """Look for the MBeans again the next time."""
        self._found = self._of_partitions = None

    def look(self) -> ClientStatistics | None:
        """Return the statistics of the client; ``None`` while there is none."""
        if self._found is None:
            groups = _OF_PRODUCERS if self._kind == PRODUCER else _OF_CONSUMERS
            found = (self._beans.found(self._of(group), names) for group, names in groups.items())
            self._found = list(chain.from_iterable(found))
        values: dict[str, float] = {}
        for bean in self._found:
            values |= self._beans.values(bean)
        if not values:
            return None
        self._has_joined = values.get("rebalance-total", 0) > 0
        self._lags = [] if self._kind == PRODUCER else self._read_lags()
        greatest = heapq.nlargest(MOST_PARTITIONS, self._lags, key=lambda lag: lag[2])
        if self._kind == CONSUMER:
            values[_LEFT_OUT] = float(len(self._lags) - len(greatest))
        return ClientStatistics(self._kind, self._id, values, greatest)

    def lag(self, partitions: float | None) -> float | None:
        """Return the sum of the lags; ``None`` unless those of all partitions are known, and the task has been given
        some, or none.
        """
        if self._kind == PRODUCER or partitions != len(self._lags) or not (partitions or self._has_joined):
            return None
        return float(sum(lag for *_, lag in self._lags))

    def _read_lags(self) -> list[tuple[str, int, int]]:
        if self._of_partitions is None:
            pattern = f"{self._of('consumer-fetch-manager-metrics')},topic=*,partition=*"
            self._of_partitions = list(self._beans.found(pattern, (_LAG,)))
        found = []
        for bean in self._of_partitions[:_MOST_READ]:
            lag = self._beans.values(bean).get(_LAG)
            if lag is not None:
                found.append((bean.properties["topic"], int(bean.properties["partition"]), int(lag)))
        return _without_deprecated(found)

    def _of(self, group: str) -> str:
        return f"kafka.{self._kind}:type={group},client-id={self._beans.quoted(self._id)}"


def _without_deprecated(lags: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the lags without those that clients tell a second time, of a topic with its dots as underscores."""
    dotted = {topic.replace(".", "_") for topic, *_ in lags if "." in topic}
    return [lag for lag in lags if lag[0] not in dotted]
