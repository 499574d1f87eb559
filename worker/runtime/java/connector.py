"""Runs a Java connector: starts it, publishes its task configs, and does so again when it asks for that."""

from __future__ import annotations

from typing import Any, Final

from connect.errors import ConnectError
from connect.providers import restore_references
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.control import Control
from worker.runtime.java.callbacks import ConnectorContext, Outcome, connector_listener
from worker.runtime.java.settings import java_connector_props, refuse_unsupported
from worker.runtime.java.unit import JavaUnit
from worker.runtime.link import Link
from worker.security.redaction import Redaction
from worker.unit import Unit

__all__ = ["run_java_connector"]

_STARTED: Final = "startup"
_LOOK_SECONDS: Final = 0.2


def run_java_connector(
    command: messages.RunConnector, assembly: Assembly, link: Link, redaction: Redaction, control: Control
) -> None:
    """Run a connector until the worker sends a stop. Raises what the connector throws."""
    refuse_unsupported(assembly.worker_props, assembly.props, is_source=assembly.is_source)
    control.watch.begin(assembly.hang_limits)
    link.when_stopped = control.watch.stopping
    with JavaUnit(Unit(command.connector), assembly, control, link, redaction) as unit:
        _Connector(unit, command).run()


class _Connector:
    def __init__(self, unit: JavaUnit, command: messages.RunConnector) -> None:
        self._unit = unit
        self._control = unit.control
        self._name = command.connector
        self._written = command.config
        self._props = java_connector_props(unit.assembly.props, unit.assembly.plugins)

    def run(self) -> None:
        """Start the connector and follow the commands of the worker."""
        unit, control = self._unit, self._control
        try:
            unit.call(self._start)
            self._await_start()
            if control.stopping:
                return
            control.send(messages.Started(unit.call(self._version)))
            unit.calls.rests = True
            control.reconfiguring = True
            while not control.stopping:
                if control.reconfiguring:
                    control.reconfiguring = False
                    control.send(messages.TaskConfigs(unit.call(self._task_configs)))
                else:
                    unit.take(None)
        finally:
            unit.call(lambda: unit.java.worker.stopAndAwaitConnector(self._name))
            # Java warns of one that has not stopped, and lets it go on. The worker kills a process that does not end.
            while control.stopping and unit.calls.run_on():
                unit.take(_LOOK_SECONDS)

    def _start(self) -> None:
        unit = self._unit
        java = unit.java

        def started(error: Any, _: Any) -> None:
            unit.hear("failure" if error is not None else _STARTED, error)

        java.worker.startConnector(
            self._name,
            java.jvm.to_java(self._props),
            ConnectorContext(self._reconfigure, lambda error: unit.hear("failure", error)),
            connector_listener(lambda event, error: unit.hear(event, error) if event == "failure" else None),
            java.started,
            Outcome(started),
        )

    def _await_start(self) -> None:
        while not self._control.stopping:
            if _STARTED in self._unit.events():
                return
            self._unit.take(None)

    def _reconfigure(self) -> None:
        self._unit.request_reconfiguration()

    def _version(self) -> str:
        return str(self._unit.java.worker.connectorVersion(self._name) or self._unit.assembly.connector_entry.version)

    def _task_configs(self) -> list[dict[str, str]]:
        unit = self._unit
        config = unit.java.connector_config(self._props, is_source=unit.assembly.is_source)
        configs = unit.java.jvm.to_python(unit.java.worker.connectorTaskConfigs(self._name, config))
        if not isinstance(configs, list):
            raise ConnectError(f"The connector {self._name} returned no list of task configs.")
        # A secret is stored as the reference it came from, and resolved again in the task's process (invariant I8).
        restored = [restore_references(each, self._written) for each in configs]
        return [{key: value for key, value in each.items() if value is not None} for each in restored]
