"""Runs a connector: starts it, publishes its task configs, and waits for commands.

A connector that watches nothing is stopped once its task configs are published, and its process ends though it counts
as running. Task configs are checked before they leave the process: the leader would refuse values that are not text
again and again, or write them where nobody could read them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from connect.connector import Connector
from connect.errors import ConnectError
from connect.internals.plugins import class_name
from connect.providers import has_reference, restore_references
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.control import Control
from worker.runtime.inquiries.connector_keys import key_warnings
from worker.runtime.java.connector import run_java_connector
from worker.runtime.link import ErrorRaised, Link
from worker.runtime.offsets.offsets import WorkerOffsetReader
from worker.runtime.offsets.topic import OffsetReader
from worker.runtime.providers import reload_after_ttl
from worker.runtime.source.guarantee import offset_reader
from worker.runtime.waits import Waits
from worker.runtime.watch import Watch
from worker.security.redaction import Redaction

__all__ = ["ConnectorRuntimeContext", "TaskConfigs", "checked_task_configs", "run_connector"]

logger = logging.getLogger(__name__)

_TASK_CLASS: Final = "task.class"

TaskConfigs: TypeAlias = Sequence[Mapping[str, str | None]]


class ConnectorRuntimeContext:
    """Gives a connector its part of the runtime; see :class:`connect.connector.ConnectorContext`.

    Everything but the offset reader may be used from threads of the connector. ``waits`` shows what it waits for,
    which a connector that only divides its work does not show.
    """

    def __init__(
        self, link: Link, control: Control, waits: Waits | None = None, reader: OffsetReader | None = None
    ) -> None:
        self._link = link
        self._waits = waits
        self._stopped = threading.Event()
        self.offset_storage_reader: OffsetReader = reader or WorkerOffsetReader(control)

    def request_task_reconfiguration(self) -> None:
        """Ask for the task configs to be computed again."""
        self._link.inbox.put(messages.Reconfigure())

    def raise_error(self, error: Exception) -> None:
        """Fail the connector."""
        self._link.inbox.put(ErrorRaised(error))

    def wait(self, seconds: float) -> bool:
        """Wait, until the connector is stopped at the latest."""
        return not self._stopped.wait(seconds)

    def show_wait(self, reason: str | None) -> None:
        """Show what the connector waits for."""
        if self._waits is not None:
            self._waits.show(reason)

    def close(self) -> None:
        """End all waits."""
        self._stopped.set()


def run_connector(command: messages.RunConnector, link: Link, redaction: Redaction, watch: Watch) -> None:
    """Run a connector until the worker sends a stop. Raises what the connector raises."""
    control = Control(link, watch)
    assembly = Assembly.resolve(command.worker, command.config, redaction, reload_after_ttl(link, command.config))
    if assembly.is_java:
        run_java_connector(command, assembly, link, redaction, control)
        return
    assembly.hide_secrets()
    if link.shares and assembly.connector_class.needs_process:
        link.send(messages.NeedsProcess())
        return
    watch.begin(assembly.hang_limits)
    link.when_stopped = watch.stopping
    assembly.check_spark()
    unresolved = _unresolved(assembly, command.config)
    for warning in (*key_warnings(assembly), *unresolved, *assembly.connector_config.warnings()):
        logger.warning("%s", warning)
    reader = offset_reader(assembly, control, None) if assembly.is_source else None
    waits = Waits(link.send, assembly.redaction.redacted, assembly.config)
    context = ConnectorRuntimeContext(link, control, waits, reader)
    with watch.call("start"):
        connector = assembly.connector_class(assembly.connector_config, context)
        connector.start()
    try:
        _attend(connector, control, assembly, command.config)
    finally:
        context.close()
        with watch.call("stop"):
            connector.stop()
        context.offset_storage_reader.close()


def _unresolved(assembly: Assembly, written: Mapping[str, str]) -> Iterator[str]:
    """Yield the warning about references that no config provider resolves: as in Kafka Connect, they stay as
    written.
    """
    for key, value in written.items():
        if has_reference(value) and assembly.props.get(key) == value:
            # I8: the value may be a password that only looks like a reference.
            yield (
                f"The reference in {key} is not replaced: config.providers of the worker names no such provider, or it "
                "has no such value. Correct one of them if that is meant to be a reference."
            )


def _attend(
    connector: Connector[object],  # type: ignore[type-var]
    control: Control,
    assembly: Assembly,
    written: Mapping[str, str],
) -> None:
    """Publish the task configs, now and on request, until the connector has to stop or rest."""
    control.send(messages.Started(assembly.version, assembly.connector_class.needs_process))
    control.reconfiguring = True
    while control.poll():
        if control.reconfiguring:
            control.reconfiguring = False
            with control.watch.call("task_configs"):
                configs = _task_configs(connector, assembly, written)
            control.send(messages.TaskConfigs(configs))
            if not connector.watches:
                control.send(messages.Idle())
        elif control.resting:
            return
        else:
            control.wait_for_command()


def _task_configs(
    connector: Connector[object],  # type: ignore[type-var]
    assembly: Assembly,
    written: Mapping[str, str],
) -> list[dict[str, str]]:
    # An engine divides the work of a single task itself.
    most = assembly.config.tasks_max if assembly.engine_class is None else 1
    configs = checked_task_configs(assembly.config.name, connector.task_configs(most))
    if len(configs) > most and assembly.config.tasks_max_enforce:
        raise ConnectError(
            f"The connector {assembly.config.name} has generated {len(configs)} tasks, which is greater than {most}, "
            "the maximum number of tasks it is configured to create. Raise tasks.max, or have the connector make fewer."
        )
    # A secret is stored as the reference it came from, and resolved again in the task's process (invariant I8).
    restored = [restore_references({**config, **_task_class(assembly)}, written) for config in configs]
    return [{key: value for key, value in config.items() if value is not None} for config in restored]


def _task_class(assembly: Assembly) -> dict[str, str]:
    """Return the class of the tasks, by its Java name if it has one: Kafka Connect needs it if it takes over the
    connector.
    """
    written = assembly.props["connector.class"]
    java = assembly.connector_entry.java_task(written)
    return {_TASK_CLASS: java or class_name(assembly.connector_class.task_class)}


def checked_task_configs(connector: str, given: object) -> TaskConfigs:
    """Check the result of a connector's ``task_configs``. Raises a :class:`~connect.errors.ConnectError` for a mistake.

    The error does not show values: a value in the wrong place may be a password (invariant I8).
    """
    for fault in _faults(given):
        raise ConnectError(
            f"task_configs of connector {connector} has to return a list with a mapping of text to text for each task, "
            f"but {fault}."
        )
    configs: TaskConfigs = given  # type: ignore[assignment]
    return configs


def _faults(given: object) -> Iterator[str]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray):
        yield f"returned {_kind(given)}"
        return
    for number, config in enumerate(given):
        where = f"number {number} of what it returned"
        if not isinstance(config, Mapping):
            yield f"{where} is {_kind(config)}"
            return
        for key, value in config.items():
            if fault := _fault_of_text(key):
                yield f"a key in {where} {fault}"
            elif value is not None and (fault := _fault_of_text(value)):
                yield f"the value of {key} in {where} {fault}"


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _fault_of_text(value: object) -> str:
    if not isinstance(value, str):
        return f"is {_kind(value)}"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "has half of a character (a lone surrogate)"
    return ""
