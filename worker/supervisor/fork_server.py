"""The fork server's own process: it forks children when its worker asks, and ends what they leave behind.

It has no threads, and its socket has no name that somebody could remove: the worker made the pair. Crash points: when
the worker is gone, everything below this process is killed, even a child that hangs; when this process is gone, its
children go on, since each watches its worker itself, and the worker ends what they have started.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Any, Final

from connect.internals.garbage_collection import collect_seldom, importing
from connect.internals.jvm.shared_process import SHARED_MARK
from connect.internals.plugins import PluginRegistry
from worker.processes.descendants import adopt_orphans, end_orphans

__all__ = ["LAST_DESCRIPTOR", "MOST_BYTES", "await_children", "main", "prepare"]

MOST_BYTES: Final = 64 * 1024
"""The maximum length of a request or answer, in bytes."""

_LOOK_SECONDS: Final = 0.02
_GRACE_SECONDS: Final = 2.0
_GIVEN_UP_SECONDS: Final = 5.0
LAST_DESCRIPTOR: Final = 2**20


@dataclass(slots=True)
class _Child:
    process: ForkProcess
    sentinel: int
    status: int
    ended: float = 0.0
    code: int = 0


def main(descriptor: int, preload: Sequence[str]) -> None:
    """Prepare for children, then serve the worker at the other end of a socket until it is gone."""
    # A service manager signals every process; only the worker acts on it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave_to_worker)
    await_children()
    adopt_orphans()
    prepare(preload)
    collect_seldom()
    _ForkServer(socket.socket(fileno=descriptor)).serve()


def await_children() -> None:
    """Have the system keep the statuses of children that end, though the program that started this one ignores them."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def prepare(modules: Sequence[str]) -> None:
    """Import the modules that children need, and find the installed plugins, so that no child has to do so again."""
    with importing():
        for module in modules:
            importlib.import_module(module)
        # A package that cannot be read is told where plugins are looked for.
        with suppress(Exception):
            PluginRegistry.discover()


def _leave_to_worker(_number: int, _frame: object) -> None:
    """Do nothing. Unlike ``SIG_IGN``, a handler is not inherited by the programs that a plugin starts."""


class _ForkServer:
    def __init__(self, worker: socket.socket) -> None:
        self._worker = worker
        self._selector = selectors.DefaultSelector()
        self._selector.register(worker, selectors.EVENT_READ)
        self._living: dict[int, _Child] = {}
        self._ended: list[_Child] = []
        self._given_up: set[int] = set()

    def serve(self) -> None:
        with suppress(ConnectionError, EOFError):
            while True:
                for key, _ in self._selector.select(_LOOK_SECONDS if self._ended else None):
                    if key.data is None:
                        self._answer()
                    else:
                        self._reap(key.data)
                if self._ended:
                    self._bury()
        self._kill_all()

    def _answer(self) -> None:
        """Fork the child that the worker asks for, and send the descriptors by which it is watched."""
        data, descriptors, _, _ = socket.recv_fds(self._worker, MOST_BYTES, 2)
        if not data:
            raise EOFError
        passed: list[int] = []
        try:
            pipe, output = descriptors
            reader, writer = os.pipe()
            descriptors.append(reader)
            child = self._fork(json.loads(data), pipe, output, writer)
            answer: dict[str, Any] = {"pid": child.process.pid}
            passed = [child.sentinel, reader]
        except (OSError, ValueError) as error:
            answer = {"error": f"the fork server could not fork: {error!r}"}
        try:
            socket.send_fds(self._worker, [json.dumps(answer).encode()], passed)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _fork(self, request: dict[str, Any], pipe: int, output: int, status: int) -> _Child:
        try:
            process = multiprocessing.get_context("fork").Process(
                target=_run, args=(request["main"], pipe, output, request["lease"]), name=request["label"]
            )
            process.start()
            assert process.pid is not None
            # If this fails for lack of descriptors, the child finds its pipe closed, and exits.
            child = _Child(process, os.pidfd_open(process.pid), status)
        except OSError:
            os.close(status)
            raise
        self._living[process.pid] = child
        self._selector.register(child.sentinel, selectors.EVENT_READ, child)
        return child

    def _reap(self, child: _Child) -> None:
        child.process.join()
        self._selector.unregister(child.sentinel)
        os.close(child.sentinel)
        del self._living[child.process.pid or 0]
        child.ended, child.code = time.monotonic(), child.process.exitcode or 0
        child.process.close()
        self._ended.append(child)

    def _bury(self) -> None:
        """End the processes that ended children left behind, and report each child once nothing of it is left."""
        now = time.monotonic()
        in_order = all(child.code == 0 and now < child.ended + _GRACE_SECONDS for child in self._ended)
        known = self._given_up.union(self._living)
        # A process that several connectors share ends with the last of them, or with the worker.
        left = end_orphans(known, signal.SIGTERM if in_order else signal.SIGKILL, spared=SHARED_MARK)
        for child in list(self._ended):
            if left and now > child.ended + _GIVEN_UP_SECONDS:
                # A process that hangs in the kernel, or runs as another user, must not hold up other reports.
                self._given_up.update(left)
            if not left or now > child.ended + _GIVEN_UP_SECONDS:
                self._ended.remove(child)
                with suppress(BrokenPipeError):
                    os.write(child.status, str(child.code).encode())
                os.close(child.status)

    def _kill_all(self) -> None:
        deadline = time.monotonic() + _GIVEN_UP_SECONDS
        while end_orphans((), signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        os._exit(0)


def _run(main: str, pipe: int, output: int, lease: str | None) -> None:
    """Run as a child: in its own session, with no descriptors open but its pipe and its output.

    The worker's own standard input and output are ``sys.__stdin__`` and ``sys.__stdout__``, where programs that the
    plugin starts cannot use them by accident.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    reads, writes = _kept(0), _kept(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, output, output)):
        os.dup2(descriptor, number)
    first = 3
    for kept in sorted((pipe, parent.sentinel, reads, writes)):
        os.closerange(first, kept)
        first = kept + 1
    os.closerange(first, LAST_DESCRIPTOR)
    for name, stream in (("__stdin__", os.fdopen(reads)), ("__stdout__", os.fdopen(writes, "w"))):
        setattr(sys, name, stream)
    os.setsid()
    adopt_orphans()
    # Processes that it forks, such as those of a pool, must end by signals.
    os.register_at_fork(after_in_child=_take_signals)
    module, _, name = main.partition(":")
    getattr(importlib.import_module(module), name)(Connection(pipe), lease)


def _kept(number: int) -> int:
    try:
        return os.dup(number)
    except OSError:
        # The worker was started without it.
        return os.open(os.devnull, os.O_RDWR)


def _take_signals() -> None:
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) is _leave_to_worker:
            signal.signal(number, default)
