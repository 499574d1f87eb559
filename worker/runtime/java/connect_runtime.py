"""Kafka Connect's runtime in the JVM of this process: its ``Worker``, one for each connector or task.

With a ``Worker`` of its own each unit has its own store of offsets and ends by itself; they share the plugins, which
are looked for once, and the configuration.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

from connect.internals.plugins import PluginRegistry
from worker.config.file_access import WORKER_FILE
from worker.config.worker import WORKER_ID, WorkerConfig
from worker.errors import JavaError
from worker.runtime.java.jvm import Jvm, jvm_of_process
from worker.runtime.java.settings import java_worker_props

__all__ = ["ConnectRuntime", "JavaWorker", "failures", "jvm_for", "runtime_of_process"]

_ANONYMOUS: Final = "sluice"
_THREADS: Final = "main"
"""The group of the threads that are not the JVM's own."""


class ConnectRuntime:
    """The plugins and the configuration that the units of this process share. May be used from any thread."""

    def __init__(self, jvm: Jvm, props: Mapping[str, str], worker_id: str) -> None:
        self.jvm = jvm
        self._worker_id = worker_id
        with failures(jvm):
            connect = jvm.java.org.apache.kafka.connect
            given = jvm.to_java(dict(props))
            self.plugins = connect.runtime.isolation.Plugins(given)
            _load_by(self.plugins.delegatingLoader(), jvm)
            runtime = connect.runtime
            is_distributed = bool(props.get("group.id") and props.get("offset.storage.topic"))
            kind = runtime.distributed.DistributedConfig if is_distributed else runtime.standalone.StandaloneConfig
            self.config = kind(given)
            if file := props.get(WORKER_FILE):
                _show_file(file, jvm, is_distributed=is_distributed)
            self._policy = self.plugins.newPlugin(
                self.config.getString("connector.client.config.override.policy"),
                self.config,
                connect.connector.policy.ConnectorClientConfigOverridePolicy._java_lang_class,
            )

    def worker(self, unit: str, store: Any) -> JavaWorker:
        """Return the ``Worker`` for one unit, started, with a store of its offsets."""
        with failures(self.jvm):
            java = self.jvm.java.org.apache.kafka
            runtime = java.connect.runtime
            worker = runtime.Worker(
                f"{self._worker_id}/{unit}",
                java.common.utils.Time.SYSTEM,
                self.plugins,
                self.config,
                store,
                self._policy,
            )
            # It is never started: the worker asks it for its store of statuses, and inquiries have it validate.
            herder = runtime.standalone.StandaloneHerder(worker, self.config.kafkaClusterId(), self._policy)
            worker.start()
            return JavaWorker(self.jvm, worker, herder)


def _load_by(loader: Any, jvm: Jvm) -> None:
    """Have all threads find classes of plugins, as those of a Java worker do.

    So do the threads that they start: py4j has some for its calls, and starts more.
    """
    for thread in jvm.java.java.lang.Thread.getAllStackTraces():
        # The JVM's own threads are in other groups, and refuse; a thread that has ended is in none.
        group = thread.getThreadGroup()
        if group is not None and group.getName() == _THREADS:
            thread.setContextClassLoader(loader)


def _show_file(file: str, jvm: Jvm, *, is_distributed: bool) -> None:
    """Name the worker's file where plugins look for it: on the command line of a Java worker.

    So Iceberg's sink finds out how its own clients reach Kafka.
    """
    main = f"org.apache.kafka.connect.cli.Connect{'Distributed' if is_distributed else 'Standalone'}"
    jvm.java.java.lang.System.setProperty("sun.java.command", f"{main} {file}")


class JavaWorker:
    """A ``Worker`` with the ``Herder`` that it refers to."""

    def __init__(self, jvm: Jvm, worker: Any, herder: Any) -> None:
        self.jvm = jvm
        self.worker = worker
        self.herder = herder
        self.runtime: Any = jvm.java.org.apache.kafka.connect.runtime

    def connector_config(self, props: Mapping[str, str], *, is_source: bool) -> Any:
        """Return the typed configuration of a connector."""
        plugins, given = self.worker.getPlugins(), self.jvm.to_java(dict(props))
        if is_source:
            return self.runtime.SourceConnectorConfig(plugins, given, self.worker.isTopicCreationEnabled())
        return self.runtime.SinkConnectorConfig(plugins, given)

    def turn(self, task: Any, *, paused: bool) -> None:
        """Have a task pause after its current call, or go on; its listener hears of it, and the log does not."""
        with failures(self.jvm):
            found = self._tasks.get(task)
            if found is not None:
                found.transitionTo(self.paused if paused else self.started)

    @cached_property
    def started(self) -> Any:
        """The state of what is to run."""
        return self.runtime.TargetState.STARTED

    @cached_property
    def paused(self) -> Any:
        """The state of what is to pause."""
        return self.runtime.TargetState.PAUSED

    def topics(self, connector: str) -> list[str]:
        """Return the topics that the tasks of this worker have used since the last call.

        Java notes a topic that its store does not have, so that it is noted anew when it is used again.
        """
        found = self._statuses.getAllTopics(connector)
        topics = sorted(str(topic.topic()) for topic in found) if found.size() else []
        for topic in topics:
            self._statuses.deleteTopic(connector, topic)
        return topics

    def close(self) -> None:
        """Stop it, with what runs in it."""
        self.worker.stop()
        self._statuses.stop()

    @cached_property
    def _statuses(self) -> Any:
        return self.herder.statusBackingStore()

    @cached_property
    def _tasks(self) -> Any:
        tasks = self.worker.getClass().getDeclaredField("tasks")
        tasks.setAccessible(True)
        return tasks.get(self.worker)


@contextmanager
def failures(jvm: Jvm) -> Iterator[None]:
    """Turn the exceptions of Java within a ``with`` block into a :class:`~worker.errors.JavaError`."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an optional package

    with jvm.calls():
        try:
            yield
        except Py4JJavaError as error:
            raise java_error(jvm, error.java_exception) from None


def java_error(jvm: Jvm, thrown: Any) -> JavaError:
    """Return the error that stands for a ``Throwable``, with the messages of its causes."""
    if thrown.getClass().getName() == _OF_A_FUTURE and thrown.getCause() is not None:
        thrown = thrown.getCause()
    told: list[str] = []
    cause = thrown
    while cause is not None and len(told) < _MOST_CAUSES:
        message = str(cause.getMessage() or cause.getClass().getSimpleName())
        if not any(message in other for other in told):
            told.append(message.rstrip("."))
        cause = cause.getCause()
    return JavaError(_UNKNOWN.sub(_UNMADE, ": ".join(told)), jvm.trace(thrown))


_OF_A_FUTURE: Final = "java.util.concurrent.ExecutionException"
_MOST_CAUSES: Final = 5
_UNKNOWN: Final = re.compile(r"(Failed to find any class that implements .*?), available .*", re.DOTALL)
"""What Java says of a class that a jar lists and that cannot be loaded or made: others are refused before."""
_UNMADE: Final = r"\1: it could not be loaded or made. The worker's log says why, at 'Failed to discover'"


_LOCK: Final = threading.Lock()
_OF_PROCESS: dict[frozenset[tuple[str, str]], ConnectRuntime] = {}


def runtime_of_process(
    worker: Mapping[str, str], registry: PluginRegistry, options: Sequence[str] = ()
) -> ConnectRuntime:
    """Return the runtime of this process with the worker's properties, which the first call starts.

    The process has one, but for inquiries that leave a property out. ``options`` are those of a new JVM in addition to
    the worker's.
    """
    with _LOCK:
        own = frozenset(worker.items())
        if own not in _OF_PROCESS:
            jvm, name = jvm_for(worker, options), worker.get(WORKER_ID) or _ANONYMOUS
            _OF_PROCESS[own] = ConnectRuntime(jvm, java_worker_props(worker, registry), name)
        return _OF_PROCESS[own]


def jvm_for(worker: Mapping[str, str], options: Sequence[str] = ()) -> Jvm:
    """Return the JVM of this process, which the first call starts with the worker's options and these."""
    return jvm_of_process(shlex.split(WorkerConfig.parse(worker).java_plugins_jvm_options), options)
