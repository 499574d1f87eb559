"""Kafka Connect's runtime in the JVM of this process: its ``Worker``, one for each connector or task.

With a ``Worker`` of its own each unit has its own store of offsets and ends by itself; they share the plugins, which
are looked for once, and the configuration.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.errors import ConnectError
from connect.internals.plugins import PluginRegistry
from worker.config.file_access import WORKER_FILE
from worker.config.worker import WORKER_ID, WorkerConfig
from worker.errors import JavaError
from worker.runtime.java.jvm import Jvm, jvm_of_process
from worker.runtime.java.settings import java_worker_props

__all__ = ["ConnectRuntime", "JavaWorker", "failures", "runtime_of_process"]

_ANONYMOUS: Final = "sluice"
_THREADS: Final = "main"
"""The group of the threads that are not the JVM's own."""


class ConnectRuntime:
    """The plugins and the configuration that the units of this process share. May be used from any thread."""

    def __init__(self, jvm: Jvm, props: Mapping[str, str], worker_id: str) -> None:
        self.jvm = jvm
        self._worker_id = worker_id
        connect = jvm.java.org.apache.kafka.connect
        given = jvm.to_java(dict(props))
        with failures(jvm):
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
        java = self.jvm.java.org.apache.kafka
        runtime = java.connect.runtime
        with failures(self.jvm):
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

    def topics(self, connector: str) -> list[str]:
        """Return the topics that the tasks of this worker have used."""
        found = self.herder.statusBackingStore().getAllTopics(connector)
        return sorted(str(topic.topic()) for topic in found)

    def close(self) -> None:
        """Stop it, with what runs in it."""
        self.worker.stop()
        self.herder.statusBackingStore().stop()


class failures:  # noqa: N801 - it is used as a statement
    """Turns the exceptions of Java within a ``with`` block into a :class:`~worker.errors.JavaError`."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - an optional package

        if isinstance(error, Py4JJavaError):
            raise java_error(self._jvm, error.java_exception) from None
        if isinstance(error, Py4JError):
            raise ConnectError(f"The JVM of this process does not answer: {error}") from error


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
    return JavaError(": ".join(told), jvm.trace(thrown))


_OF_A_FUTURE: Final = "java.util.concurrent.ExecutionException"
_MOST_CAUSES: Final = 5


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
            of_worker = shlex.split(WorkerConfig.parse(worker).java_plugins_jvm_options)
            jvm, name = jvm_of_process([*of_worker, *options]), worker.get(WORKER_ID) or _ANONYMOUS
            _OF_PROCESS[own] = ConnectRuntime(jvm, java_worker_props(worker, registry), name)
        return _OF_PROCESS[own]
