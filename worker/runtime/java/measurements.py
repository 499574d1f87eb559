"""The measurements of a Java task: those of Kafka Connect's runtime, by JMX, under the names that they have there."""

from __future__ import annotations

import math
from typing import Any, Final

from worker.messages import messages
from worker.runtime.control import Control
from worker.runtime.java.connect_runtime import JavaWorker, failures

__all__ = ["Measurements"]

_TYPES: Final = ("source-task-metrics", "sink-task-metrics", "connector-task-metrics", "task-error-metrics")
_OF_THE_WORKER: Final = frozenset({"status", "running-ratio", "pause-ratio"})
"""What the worker itself measures, of every task."""


class Measurements:
    """Reads and reports the measurements of one task. Used by the thread of the task."""

    def __init__(self, java: JavaWorker, connector: str, task: int, control: Control) -> None:
        self._java = java
        self._control = control
        self._connector = connector
        self._task = task
        self._names: list[tuple[Any, Any]] | None = None
        self._sent: dict[str, float] | None = None

    def report(self) -> None:
        """Send the worker what has changed since the last report."""
        with failures(self._java.jvm):
            try:
                values = self._read()
            except BaseException:
                # It is looked for again: Java registers them anew when a task starts.
                self._names = None
                raise
        cpu = self._control.cpu()
        if values == self._sent:
            self._control.send(messages.Unchanged(cpu))
            return
        self._sent = values
        self._control.send(messages.Metrics(values, cpu=cpu))

    def _read(self) -> dict[str, float]:
        server = self._java.jvm.java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        if self._names is None:
            self._names = list(self._beans(server))
        values: dict[str, float] = {}
        for bean, attributes in self._names:
            for one in self._java.jvm.to_python(server.getAttributes(bean, attributes)):
                # What was not measured yet is no number.
                if (
                    isinstance(one["value"], int | float)
                    and math.isfinite(one["value"])
                    and one["name"] not in _OF_THE_WORKER
                ):
                    values[one["name"]] = float(one["value"])
        return values

    def _beans(self, server: Any) -> list[tuple[Any, Any]]:
        """Return the MBeans of the task, each with the names of its attributes."""
        jvm = self._java.jvm
        connector = jvm.java.org.apache.kafka.common.utils.Sanitizer.jmxSanitize(self._connector)
        found = []
        for kind in _TYPES:
            pattern = f"kafka.connect:type={kind},connector={connector},task={self._task}"
            name = jvm.java.javax.management.ObjectName(pattern)
            if server.isRegistered(name):
                names = [str(each.getName()) for each in server.getMBeanInfo(name).getAttributes()]
                found.append((name, jvm.strings(names)))
        return found
