"""Runs a Java task, which reads and writes its records itself."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from connect.errors import ConnectError
from connect.providers import resolve_references
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.control import Control
from worker.runtime.java.callbacks import Listener, Outcome, OwnershipCheck
from worker.runtime.java.measurements import Measurements
from worker.runtime.java.settings import java_connector_props, refuse_unsupported
from worker.runtime.java.unit import JavaUnit
from worker.runtime.link import Link
from worker.runtime.metrics import ActiveTopics
from worker.runtime.watch import Watch
from worker.security.redaction import Redaction
from worker.unit import Unit

__all__ = ["run_java_task"]

logger = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 5.0
_ENDED: Final = "shutdown"
_STARTED: Final = frozenset({"startup", "pause"})


def run_java_task(
    command: messages.RunTask, assembly: Assembly, link: Link, redaction: Redaction, watch: Watch
) -> None:
    """Run a task until the worker sends a stop. Raises what the task throws."""
    control = Control(link, watch, paused=command.paused)
    refuse_unsupported(assembly.worker_props, assembly.props, is_source=assembly.is_source)
    watch.begin(assembly.hang_limits)
    link.when_stopped = watch.stopping
    with JavaUnit(Unit(command.connector, command.task), assembly, control, link, redaction) as unit:
        _Task(unit, command).run()


class _Task:
    def __init__(self, unit: JavaUnit, command: messages.RunTask) -> None:
        assembly = unit.assembly
        self._unit = unit
        self._control = unit.control
        self._name, self._number = command.connector, command.task
        self._props = java_connector_props(assembly.props, assembly.plugins)
        resolved = resolve_references(command.config, assembly.providers).values
        self._config = {key: value for key, value in resolved.items() if value is not None}
        java = unit.java
        self._id = java.jvm.java.org.apache.kafka.connect.util.ConnectorTaskId(self._name, self._number)
        both = {**self._props, **self._config}
        self._measurements = Measurements(
            java, self._name, self._number, unit.control, both, is_source=assembly.is_source
        )
        self._topics = ActiveTopics(unit.control.send, enabled=assembly.worker.topic_tracking_enable)
        self._paused = unit.control.paused
        self._has_paused = False
        self._has_told_pause = False
        unit.calls.probe = self._probe
        self._runs = False
        self._has_started = False
        self._has_ended = False

    def run(self) -> None:
        """Start the task and follow the commands of the worker."""
        unit, control = self._unit, self._control
        try:
            self._runs = unit.call(self._start)
            if not self._runs:
                # The listener has heard why.
                self._await_failure()
            due = 0.0
            while not control.stopping:
                self._follow_events()
                if control.paused is not self._paused:
                    self._paused = control.paused
                    unit.call(self._set_state)
                    if self._paused and self._has_paused:
                        self._hear_pause()
                if self._has_started and time.monotonic() >= due:
                    self._look()
                    due = time.monotonic() + self._measurements.pause
                if not control.stopping:
                    unit.take(max(0.0, due - time.monotonic()) if self._has_started else None)
        finally:
            self._stop()

    def _start(self) -> bool:
        java, assembly = self._unit.java, self._unit.assembly
        state = java.paused if self._paused else java.started
        listener = Listener(self._unit.hear)
        jvm = java.jvm
        given = (self._id, self._config_state(), jvm.to_java(self._props), jvm.to_java(self._config), listener, state)
        if not assembly.is_source:
            return bool(java.worker.startSinkTask(*given))
        if not assembly.supports_exactly_once:
            return bool(java.worker.startSourceTask(*given))
        check = OwnershipCheck(self._unit.owns)
        return bool(java.worker.startExactlyOnceSourceTask(*given, check, check))

    def _config_state(self) -> Any:
        """Return the part of the cluster's state that a task can ask for: its own configuration."""
        java = self._unit.java
        util, jvm = java.jvm.java.java.util, java.jvm
        tasks, connectors, counts = util.HashMap(), util.HashMap(), util.HashMap()
        tasks.put(self._id, jvm.to_java(self._config))
        connectors.put(self._name, jvm.to_java(self._props))
        counts.put(self._name, self._number + 1)
        none, nobody = util.HashMap(), util.HashSet()
        states = util.HashMap()
        states.put(self._name, java.started)
        return jvm.java.org.apache.kafka.connect.storage.ClusterConfigState(
            1, None, counts, connectors, states, tasks, none, none, none, nobody, nobody
        )

    def _await_failure(self) -> None:
        deadline = time.monotonic() + _LOOK_SECONDS
        while (left := deadline - time.monotonic()) > 0 and not self._control.stopping:
            self._unit.take(left)
        if not self._control.stopping:
            raise ConnectError("The task could not be started, and Java's runtime did not say why; see the log.")

    def _follow_events(self) -> None:
        for event in self._unit.events():
            if event in _STARTED and not self._has_started:
                self._has_started = True
                self._control.send(messages.Started(self._version()))
                self._unit.archive_classes()
            match event:
                case "pause":
                    self._hear_pause()
                case "resume":
                    self._hear_resumption()
                case _ if event == _ENDED:
                    self._has_ended = True
                    if not self._control.stopping:
                        raise ConnectError("The task has ended without having been asked to; see the log.")

    def _version(self) -> str:
        return str(self._unit.java.worker.taskVersion(self._id) or self._unit.assembly.connector_entry.version)

    def _hear_pause(self) -> None:
        self._has_paused = True
        if not self._paused:
            # It was only asked whether its last call has returned.
            self._unit.java.turn(self._id, paused=False)
        elif not self._has_told_pause:
            self._has_told_pause = True
            self._control.send(messages.Paused())

    def _hear_resumption(self) -> None:
        self._has_paused = False
        if self._has_told_pause:
            self._has_told_pause = False
            self._control.send(messages.Resumed())

    def _probe(self) -> None:
        if not self._paused:
            self._unit.java.turn(self._id, paused=True)

    def _set_state(self) -> None:
        java = self._unit.java
        state = java.paused if self._paused else java.started
        java.worker.setTargetState(self._name, state, Outcome(lambda _error, _state: None))

    def _look(self) -> None:
        """Report measurements and topics. What cannot be measured is no reason to fail."""
        try:
            self._measurements.report()
            self._topics.see(self._unit.java.topics(self._name))
        except ConnectError as error:
            self._measurements.pause = _LOOK_SECONDS
            logger.warning("The task cannot be measured: %s", error)

    def _stop(self) -> None:
        """Stop the task, and return when its thread has ended; the worker kills a process whose task does not."""
        unit = self._unit
        if self._has_started and not unit.has_failed:
            self._look()
        unit.call(lambda: unit.java.worker.stopAndAwaitTask(self._id))
        while self._runs and not (self._has_ended or unit.has_failed):
            if _ENDED in unit.events():
                break
            unit.take(None)
