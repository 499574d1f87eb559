"""Relays between clients and a broker that can be cut, to simulate a failing network.

The relays run in their own process, so that they do not wait for the test. Run as a program, this module is that
process: its arguments are pairs of ports, from and to, and it reads one order per line: ``cut PORT``, ``stall PORT``,
``heal PORT``.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Proxy"]

_HOST = "127.0.0.1"
_CHUNK = 1 << 16


class Proxy:
    """Relays from ports to ports of this machine. Close it at the end."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        pairs = [str(port) for pair in ports.items() for port in pair]
        command = [sys.executable, str(Path(__file__)), *pairs]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lock = threading.Lock()
        self._expect("ready")

    def cut(self, port: int) -> None:
        """Reset the connections that came in at this port, and refuse new ones."""
        self._order(f"cut {port}")

    def stall(self, port: int) -> None:
        """Drop everything that goes through this port, without errors and without answers."""
        self._order(f"stall {port}")

    def heal(self, port: int) -> None:
        """Relay again. Connections whose bytes were lost are reset."""
        self._order(f"heal {port}")

    def close(self) -> None:
        """End all relays."""
        self._process.kill()
        self._process.communicate()

    def _order(self, order: str) -> None:
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()
            self._expect(order)

    def _expect(self, answer: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line == answer, f"the proxy said {line!r} and not {answer!r}"


class _Relay:
    """The relay of one port. It passes bytes on as long as it is healthy."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._stalled = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, _HOST, self._source)

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._reset()

    async def stall(self) -> None:
        self._stalled = True

    async def heal(self) -> None:
        if self._stalled:
            self._stalled = False
            self._reset()
        if self._server is None:
            await self.listen()

    def _reset(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there, back = await asyncio.open_connection(_HOST, self._target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        self._writers.add(back)
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        self._writers -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if not self._stalled:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


async def _main(ports: Mapping[int, int]) -> None:
    relays = {source: _Relay(source, target) for source, target in ports.items()}
    for relay in relays.values():
        await relay.listen()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while order := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        verb, port = order.split()
        await {"cut": _Relay.cut, "stall": _Relay.stall, "heal": _Relay.heal}[verb](relays[int(port)])
        print(order, flush=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(_main(dict(zip(numbers[::2], numbers[1::2], strict=True))))
