"""Packets of a log as they arrive: in pieces, together, and longer than one packet can be."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from connect.errors import ConnectError, RetriableError
from connectors.cdc.mysql.binlog.dump import BinlogDump, LogPurgedError

LONGEST = 0xFFFFFF


class Connection:
    """What a dump uses of a connection of PyMySQL's once the log is being sent."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def _force_close(self) -> None:
        self._sock.close()


class Wire:
    """A server that sends bytes, and the dump that reads them."""

    def __init__(self) -> None:
        self.server, client = socket.socketpair()
        client.setblocking(False)
        self.dump = BinlogDump(Connection(client), is_mariadb=False, heartbeat_seconds=1)  # type: ignore[arg-type]

    def read(self, count: int) -> list[bytes]:
        """Wait for so many events."""
        found: list[bytes] = []
        while len(found) < count:
            assert self.dump.wait(10)
            found += self.dump.events()
        return found

    def close(self) -> None:
        self.server.close()
        self.dump.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


def packets(event: bytes) -> bytes:
    """An event as the protocol sends it."""
    body, parts = b"\0" + event, []
    while len(body) >= LONGEST:
        parts.append(struct.pack("<I", LONGEST) + body[:LONGEST])
        body = body[LONGEST:]
    return b"".join([*parts, struct.pack("<I", len(body)) + body])


def failure(number: int, text: str) -> bytes:
    body = b"\xff" + struct.pack("<H", number) + b"#HY000" + text.encode()
    return struct.pack("<I", len(body)) + body


def test_events_are_put_together_from_pieces(wire: Wire) -> None:
    sent = packets(b"first") + packets(b"second") + packets(b"")
    found: list[bytes] = []
    for at in range(len(sent)):
        wire.server.send(sent[at : at + 1])
        wire.dump.wait(10)
        found += wire.dump.events()

    assert found == [b"first", b"second", b""]
    assert list(wire.dump.events()) == []


@pytest.mark.parametrize("size", [LONGEST - 2, LONGEST - 1, LONGEST, 2 * LONGEST + 5])
def test_long_events_come_in_several_packets(wire: Wire, size: int) -> None:
    event = bytes(size)
    sender = threading.Thread(target=wire.server.sendall, args=(packets(event) + packets(b"next"),))
    sender.start()

    found = wire.read(2)

    sender.join()
    assert found == [event, b"next"]


def test_what_the_server_refuses_is_told_by_its_number(wire: Wire) -> None:
    wire.server.send(packets(b"before") + failure(1236, "Could not find first log file name"))
    events = wire.dump.events()
    assert next(events) == b"before"
    with pytest.raises(LogPurgedError, match="Could not find"):
        next(events)


def test_another_reader_with_the_same_number_is_no_lost_log(wire: Wire) -> None:
    wire.server.send(failure(1236, "A replica with the same server_uuid/server_id as this replica has connected"))

    with pytest.raises(ConnectError, match=r"same database\.server\.id") as told:
        wire.read(1)
    assert not isinstance(told.value, LogPurgedError)


def test_a_closed_connection_is_made_again(wire: Wire) -> None:
    wire.server.close()

    with pytest.raises(RetriableError, match="closed the connection"):
        wire.read(1)


def test_the_end_of_a_log_that_is_not_followed_is_noted(wire: Wire) -> None:
    wire.server.send(packets(b"last") + struct.pack("<I", 5) + b"\xfe\0\0\2\0")

    assert wire.read(1) == [b"last"]
    assert wire.dump.ended
