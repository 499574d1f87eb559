"""The Python objects that Java calls: listeners of its connectors and tasks, and the store of their offsets.

py4j calls them in threads of its own, so they only pass on what they are told.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from connect.errors import ConnectError
from worker.messages import messages
from worker.runtime.java.jvm import Jvm
from worker.stores.offset.store import offset_value

__all__ = [
    "ConnectorContext",
    "ForgetfulStore",
    "Listener",
    "OffsetStore",
    "Outcome",
    "OwnershipCheck",
    "connector_listener",
]

Ask = Callable[[Callable[[int], messages.Report], Callable[[Any], None]], None]
"""Sends the worker the request with the number that it is given, and has the answer handled."""

_LISTENERS: Final = "org.apache.kafka.connect.runtime."


class Listener:
    """A ``TaskStatus.Listener``: ``tell`` gets the name of each event, and the error of a failure."""

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell

    def onStartup(self, _unit: Any) -> None:  # noqa: N802 - Java's name
        """Tell of the start."""
        self._tell("startup", None)

    def onPause(self, _unit: Any) -> None:  # noqa: N802
        """Tell of a pause."""
        self._tell("pause", None)

    def onResume(self, _unit: Any) -> None:  # noqa: N802
        """Tell of the end of a pause."""
        self._tell("resume", None)

    def onFailure(self, _unit: Any, error: Any) -> None:  # noqa: N802
        """Tell of a failure."""
        self._tell("failure", error)

    def onShutdown(self, _unit: Any) -> None:  # noqa: N802
        """Tell of the end."""
        self._tell("shutdown", None)

    def onStop(self, _unit: Any) -> None:  # noqa: N802
        """Tell of a stop."""
        self._tell("stop", None)

    def onDeletion(self, _unit: Any) -> None:  # noqa: N802
        """Do nothing: the herder deletes connectors."""

    def onRestart(self, _unit: Any) -> None:  # noqa: N802
        """Do nothing: the herder restarts units."""

    class Java:
        implements = (f"{_LISTENERS}TaskStatus$Listener",)


class ConnectorListener(Listener):
    """A ``ConnectorStatus.Listener``."""

    class Java:
        implements = (f"{_LISTENERS}ConnectorStatus$Listener",)


def connector_listener(tell: Callable[[str, Any], None]) -> Listener:
    """Return the listener of a connector."""
    return ConnectorListener(tell)


class ConnectorContext:
    """The ``CloseableConnectorContext`` by which a connector asks for new task configs, or fails."""

    def __init__(self, reconfigure: Callable[[], None], fail: Callable[[Any], None]) -> None:
        self._reconfigure = reconfigure
        self._fail = fail

    def requestTaskReconfiguration(self) -> None:  # noqa: N802
        """Ask for the task configs to be computed again."""
        self._reconfigure()

    def raiseError(self, error: Any) -> None:  # noqa: N802
        """Fail the connector."""
        self._fail(error)

    def pluginMetrics(self) -> None:  # noqa: N802
        """Return nothing: the runtime puts its own context, with the metrics, before this one."""

    def close(self) -> None:
        """Do nothing: the unit ends after its connector."""

    class Java:
        implements = (f"{_LISTENERS}CloseableConnectorContext",)


class Outcome:
    """A ``Callback``: ``tell`` gets the error, or else the result."""

    def __init__(self, tell: Callable[[Any, Any], None]) -> None:
        self._tell = tell

    def onCompletion(self, error: Any, result: Any) -> None:  # noqa: N802
        """Tell of the outcome."""
        self._tell(error, result)

    class Java:
        implements = ("org.apache.kafka.connect.util.Callback",)


class OwnershipCheck:
    """A ``Runnable`` that returns if the task is still this worker's, and fails otherwise."""

    def __init__(self, confirm: Callable[[], bool]) -> None:
        self._confirm = confirm

    def run(self) -> None:
        """Confirm it."""
        if not self._confirm():
            raise ConnectError("The task does not belong to this worker any more.")

    class Java:
        implements = ("java.lang.Runnable",)


class OffsetStore:
    """An ``OffsetBackingStore`` that has the worker read and write offsets, as the native tasks do.

    So a task of a worker that has lost its place in the cluster writes none (invariant I6), and standalone workers need
    no file of their own for Java.
    """

    def __init__(self, jvm: Jvm, ask: Ask) -> None:
        self._jvm = jvm
        self._ask = ask

    def get(self, keys: Any) -> Any:
        """Return a ``Future`` of the values of some keys, each the JSON of connector and source partition."""
        java, future = self._jvm.java, self._jvm.java.java.util.concurrent.CompletableFuture()
        given = list(keys)
        partitions = [orjson.loads(bytes(key.array()))[1] for key in given]

        def answer(said: messages.OffsetsRead) -> None:
            if said.error is not None:
                future.completeExceptionally(self._error(said.error))
                return
            found = java.java.util.HashMap()
            for key, offset in zip(given, said.offsets, strict=True):
                if offset is not None:
                    found.put(key, java.java.nio.ByteBuffer.wrap(offset_value(offset)))
            future.complete(found)

        self._ask(lambda request: messages.ReadOffsets(request, partitions), answer)
        return future

    def set(self, values: Any, callback: Any) -> Any:
        """Return a ``Future`` that ends when the worker has stored these offsets; so does the callback."""
        future = self._jvm.java.java.util.concurrent.CompletableFuture()
        # The map of py4j has Python's methods of these names.
        keys, offsets = (self._decoded(self._jvm.call(values, method)) for method in ("keySet", "values"))
        pairs = [(key[1], offset) for key, offset in zip(keys, offsets, strict=True)]

        def answer(said: messages.OffsetsCommitted) -> None:
            error = None if said.error is None else self._error(said.error)
            if callback is not None:
                callback.onCompletion(error, None)
            if error is None:
                future.complete(None)
            else:
                future.completeExceptionally(error)

        self._ask(lambda request: messages.CommitOffsets(request, pairs), answer)
        return future

    def connectorPartitions(self, _connector: str) -> Any:  # noqa: N802
        """Return none: only the runtime's own alteration of offsets asks, and offsets are altered by the worker."""
        return self._jvm.java.java.util.HashSet()

    def configure(self, _config: Any) -> None:
        """Do nothing: the worker has the configuration."""

    def start(self) -> None:
        """Do nothing: the worker has started its store."""

    def stop(self) -> None:
        """Do nothing: the worker stops its store."""

    def _decoded(self, buffers: Any) -> Sequence[Any]:
        encoded = self._jvm.to_python(buffers)
        return [None if one is None else orjson.loads(base64.b64decode(one)) for one in encoded]

    def _error(self, reason: str) -> Any:
        return self._jvm.java.org.apache.kafka.connect.errors.ConnectException(reason)

    class Java:
        implements = ("org.apache.kafka.connect.storage.OffsetBackingStore",)


class ForgetfulStore(OffsetStore):
    """An ``OffsetBackingStore`` of a connector that does not run: it has no offsets, and keeps none."""

    def __init__(self, jvm: Jvm) -> None:
        super().__init__(jvm, _never_ask)

    def get(self, _keys: Any) -> Any:
        """Return a ``Future`` of no values."""
        return self._done(self._jvm.java.java.util.HashMap())

    def set(self, _values: Any, callback: Any) -> Any:
        """Return a ``Future`` that has ended; the herder writes the offsets that an inquiry has found acceptable."""
        if callback is not None:
            callback.onCompletion(None, None)
        return self._done(None)

    def _done(self, value: Any) -> Any:
        future = self._jvm.java.java.util.concurrent.CompletableFuture()
        future.complete(value)
        return future

    class Java:
        implements = OffsetStore.Java.implements


def _never_ask(_request: object, _answer: object) -> None:
    raise AssertionError("A store without a worker was asked for offsets.")
