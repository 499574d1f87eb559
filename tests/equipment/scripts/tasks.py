"""One task on a real broker: the code of its process runs in a thread, and the test acts as the worker."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from multiprocessing.connection import Pipe
from typing import Any, TypeVar

from equipment.waiting import wait_until
from worker.messages import messages
from worker.messages.messages import Command, Report, decode, encode
from worker.runtime.child import run
from worker.runtime.link import Line

__all__ = ["RunningTask", "class_name"]

R = TypeVar("R")


def class_name(plugin: type) -> str:
    """The name of a class in a configuration."""
    return f"{plugin.__module__}.{plugin.__qualname__}"


class RunningTask:
    """A task that runs until it is stopped or fails. Keeps source offsets, and every report for the test."""

    def __init__(
        self,
        bootstrap: str,
        connector: Mapping[str, str],
        *,
        worker: Mapping[str, str] | None = None,
        task: int = 0,
        paused: bool = False,
        offsets: Mapping[str, dict[str, Any] | None] = {},
        commit_error: str | None = None,
    ) -> None:
        self.reports: list[Report] = []
        self.offsets = dict(offsets)
        self.commit_error = commit_error
        self._worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": "StringConverter",
            "value.converter": "StringConverter",
            "offset.flush.interval.ms": "50",
            "consumer.session.timeout.ms": "45000",
            "consumer.heartbeat.interval.ms": "200",
            # Whoever waits for the end of a partition, or asks on the same connection, waits for so long.
            "consumer.fetch.max.wait.ms": "50",
            # The connectors of tests are classes of their own modules and of the equipment.
            "plugin.import.allowlist": "test_*,equipment.scripts.*",
            **(worker or {}),
        }
        self._ours, theirs = Pipe()
        line = Line(theirs, on_orphaned=lambda: None)
        self.config = config = dict(connector)
        self.send(messages.RunTask(config["name"], task, config, config, self._worker, paused=paused))

        self._child = threading.Thread(target=lambda: run(line, log_to_worker=False), daemon=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._child.start()
        self._listener.start()

    def send(self, command: Command) -> None:
        """Send a command to the task."""
        self._ours.send_bytes(encode(command))

    def seen(self, kind: type[R]) -> list[R]:
        """The reports of one kind so far."""
        return [report for report in list(self.reports) if isinstance(report, kind)]

    def wait_for(self, kind: type[R], count: int = 1) -> R:
        """Wait for this many reports of a kind, and return the last one."""
        return wait_until(f"the task says {kind.__name__}", lambda: self._enough(kind, count))[count - 1]

    def trace(self) -> str:
        """Wait until the task fails, and return its trace."""
        trace = self.wait_for(messages.Failed).trace
        self.join()
        return trace

    def metric(self, name: str) -> float:
        """The latest value of a metric."""
        measured = self.seen(messages.Metrics)
        return measured[-1].values.get(name, 0.0) if measured else 0.0

    def stop(self) -> None:
        """Stop the task cleanly; it must not fail meanwhile."""
        self.send(messages.Stop())
        self.join()
        assert self.seen(messages.Failed) == []

    def join(self) -> None:
        """Wait until it has ended."""
        self._child.join(30)
        assert not self._child.is_alive(), "the task did not end"

    def close(self) -> None:
        """Stop everything that is running."""
        if self._child.is_alive():
            self.send(messages.Stop())
            self._child.join(30)
        # Both ends are read by threads, which a close alone would not wake.
        with socket.socket(fileno=os.dup(self._ours.fileno())) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)
        self._listener.join(30)
        self._ours.close()

    def _enough(self, kind: type[R], count: int) -> list[R]:
        seen = self.seen(kind)
        if len(seen) < count and (failed := self.seen(messages.Failed)):
            raise AssertionError(failed[0].trace)
        return seen if len(seen) >= count else []

    def _listen(self) -> None:
        while True:
            try:
                report: Report = decode(self._ours.recv_bytes())
            except (EOFError, OSError):
                return
            if isinstance(report, messages.ReadOffsets):
                known = [self.offsets.get(str(partition)) for partition in report.partitions]
                self.send(messages.OffsetsRead(report.request, known, None))
            elif isinstance(report, messages.CommitOffsets):
                if self.commit_error is None:
                    self.offsets |= {str(partition): offset for partition, offset in report.offsets}
                self.send(messages.OffsetsCommitted(report.request, self.commit_error))
            elif isinstance(report, messages.ConfirmOwnership):
                self.send(messages.OwnershipConfirmed(report.request))
            if isinstance(report, messages.Failed):
                logging.getLogger(__name__).info("the task failed: %s", report.trace)
            self.reports.append(report)
