"""An MQTT server that answers late, and may forget its sessions: as one without persistence does when it is killed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

__all__ = ["ForgetfulServer"]

_CONNECT, _PUBLISH, _PUBREL, _DISCONNECT = 1, 3, 6, 14
_QUIET_SECONDS = 0.1


class ForgetfulServer:
    """A server for one client at a time, that publishes with QoS 2.

    It answers what has come once nothing more comes. The first message that is to be released is lost with the
    connection and all others, if it ``forgets``. ``window`` is what it says to clients of MQTT 5. If it
    ``hangs_up``, it takes no message, and ends the connection over each.
    """

    def __init__(self, *, forgets: bool = False, window: int | None = None, hangs_up: bool = False) -> None:
        self.delivered: list[bytes] = []
        self.most_under_way = 0
        self._forgets = forgets
        self._hangs_up = hangs_up
        self._window = window
        self._held: dict[bytes, bytes] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def props(self) -> dict[str, str]:
        """The keys of a connector that connect to it."""
        return {"mqtt.server.uri": f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"}

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(ConnectionError):
                self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_QUIET_SECONDS)
        data, answers = b"", []
        while True:
            try:
                more = connection.recv(65_536)
            except TimeoutError:
                connection.sendall(b"".join(answers))
                answers = []
                continue
            if not more:
                return
            *packets, data = _packets(data + more)
            for packet in packets:
                kind = packet[0] >> 4
                if kind == _DISCONNECT or (kind == _PUBLISH and self._hangs_up):
                    return
                if kind == _PUBREL and self._forgets:
                    self._forgets = False
                    self._held.clear()
                    return
                answers.append(self._answer(kind, packet))

    def _answer(self, kind: int, packet: bytes) -> bytes:
        if kind == _CONNECT:
            own = b"" if self._window is None else b"\x03\x21" + self._window.to_bytes(2, "big")
            return bytes([0x20, 2 + len(own), 0, 0]) + own
        if kind == _PUBLISH:
            topic_end = 4 + int.from_bytes(packet[2:4], "big")
            number = packet[topic_end : topic_end + 2]
            self._held[number] = packet[topic_end + 2 :]
            self.most_under_way = max(self.most_under_way, len(self._held))
            return b"\x50\x02" + number
        if kind == _PUBREL:
            number = packet[2:4]
            if number in self._held:
                self.delivered.append(self._held.pop(number))
            return b"\x70\x02" + number
        return b""


def _packets(data: bytes) -> Iterator[bytes]:
    """The whole packets, each shorter than 128 bytes, and the rest."""
    while len(data) > 1 and len(data) >= 2 + data[1]:
        yield data[: 2 + data[1]]
        data = data[2 + data[1] :]
    yield data
