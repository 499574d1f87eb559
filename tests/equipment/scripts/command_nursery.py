"""Forks processes of the command ``sluice`` that have imported what workers import, which is most of their start.

It serves the process at the other end of a socket until that is gone. Those that it has forked do not end with it.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

_IMPORTS: Final = (
    "worker.app.distributed",
    "worker.app.standalone",
    "worker.cli.mirror.command",
    "worker.supervisor.fork_client",
    # What the fork server of a worker imports.
    *(
        "converters.json",
        "converters.simple_header",
        "converters.string",
        "worker.runtime.child",
        "worker.runtime.entry",
    ),
)
_LONGEST: Final = 256 * 1024
_STREAMS: Final = 3
_LAST_DESCRIPTOR: Final = 2**20


def _forked(connection: socket.socket) -> list[str] | None:
    """Fork on request; returns the arguments of a process in that process, and nothing once the other end is gone."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.data is not None:
                    selector.unregister(key.fd)
                    _tell(key.fd, *key.data)
                    continue
                data, descriptors, _, _ = socket.recv_fds(connection, _LONGEST, _STREAMS + 1)
                if not data:
                    return None
                request = json.loads(data)
                pid = os.fork()
                if pid == 0:
                    _become(request["environ"], descriptors[:_STREAMS])
                    return list(request["arguments"])
                for descriptor in descriptors[:_STREAMS]:
                    os.close(descriptor)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, descriptors[_STREAMS]))
                connection.send(str(pid).encode())


def _tell(pidfd: int, pid: int, status: int) -> None:
    """Write with which status a process has ended, or by which signal, a negative number."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        os.write(status, str(code).encode())
    os.close(status)
    os.close(pidfd)


def _become(environ: dict[str, str], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_STREAMS, _LAST_DESCRIPTOR)
    os.environ.clear()
    os.environ.update(environ)


def main() -> None:
    """Serve; in a process that is forked, be the command."""
    program = Path(sys.executable).with_name("sluice")
    sys.path[0] = str(program.parent)
    gc.disable()
    for name in _IMPORTS:
        import_module(name)
    gc.freeze()
    gc.enable()
    arguments = _forked(socket.socket(fileno=int(sys.argv[1])))
    if arguments is not None:
        sys.argv[:] = [str(program), *arguments]
        import_module("worker.cli.main").main()


if __name__ == "__main__":
    main()
