"""Forks processes that have imported what they need, which is most of their start.

``nursery.py DESCRIPTOR MODULE...`` imports the modules and serves the process at the other end of a socket until that
is gone. Processes that it has forked do not end with it.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final

_LONGEST: Final = 256 * 1024
_MOST_DESCRIPTORS: Final = 8
_LAST_DESCRIPTOR: Final = 2**20


def _forked(connection: socket.socket) -> Callable[[], None] | None:
    """Fork on request; returns in a forked process what it is to do, and nothing once the other end is gone."""
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.data is not None:
                selector.unregister(key.fd)
                _tell(key.fd, *key.data)
                continue
            data, descriptors, _, _ = socket.recv_fds(connection, _LONGEST, _MOST_DESCRIPTORS)
            if not data:
                return None
            request, (status, *streams) = json.loads(data), descriptors
            pid = os.fork()
            if pid == 0:
                # Their numbers may be those of streams.
                selector.close()
                connection.close()
                return _become(request, streams)
            for stream in streams:
                os.close(stream)
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))
            connection.send(str(pid).encode())


def _tell(pidfd: int, pid: int, status: int) -> None:
    """Write with which status a process has ended, or by which signal, a negative number."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(status, str(code).encode())
    os.close(status)
    os.close(pidfd)


def _become(request: dict[str, object], streams: list[int]) -> Callable[[], None]:
    # None of them has one of the first numbers, which were taken when they were received.
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), _LAST_DESCRIPTOR)
    os.environ.clear()
    os.environ.update(request["environ"])  # type: ignore[call-overload]
    sys.argv[:] = request["arguments"]  # type: ignore[assignment]
    module, _, name = str(request["main"]).partition(":")
    main: Callable[[], None] = getattr(import_module(module), name)
    return main


def main() -> None:
    """Serve; in a process that is forked, do what that is to do."""
    # The folder of this file is nobody's to import from; that of the program is first, as when it is called.
    sys.path[0] = os.path.dirname(sys.executable)  # noqa: PTH120 - not where a link leads
    gc.disable()
    for name in sys.argv[2:]:
        import_module(name)
    gc.freeze()
    gc.enable()
    be = _forked(socket.socket(fileno=int(sys.argv[1])))
    if be is not None:
        be()


if __name__ == "__main__":
    main()
