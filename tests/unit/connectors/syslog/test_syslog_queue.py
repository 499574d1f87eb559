"""The queue between the receiver and the task, and datagrams taken many at a time."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from connectors.syslog.datagrams import DatagramReader, dropped_datagrams, widen_receive_buffer
from connectors.syslog.inbox import Inbox, Messages
from equipment.waiting import wait_until


def messages(count: int, size: int = 10) -> Messages:
    return Messages([b"x" * size] * count, ["10.0.0.1"] * count, 0.0)


def test_the_queue_says_when_there_is_something_and_when_there_is_room() -> None:
    told: list[str] = []
    inbox = Inbox(10, 1 << 20, lambda: told.append("arrived"), lambda: told.append("emptied"))
    inbox.put(messages(4))
    inbox.put(messages(4))
    assert (told, inbox.messages, inbox.is_full) == (["arrived"], 8, False)
    inbox.put(messages(4))
    assert (inbox.messages, inbox.is_full) == (12, True)
    assert [len(each.lines) for each in inbox.take(5)] == [4, 4]
    assert (told, inbox.messages) == (["arrived", "emptied"], 4)
    assert len(inbox.take(100)) == 1
    inbox.put(messages(1))
    assert told == ["arrived", "emptied"]
    assert len(inbox.take(100)) == 1
    assert (inbox.take(100), inbox.messages, inbox.bytes) == ([], 0, 0)
    inbox.put(messages(1))
    assert told == ["arrived", "emptied", "arrived"]


def test_the_queue_is_full_of_few_large_messages() -> None:
    inbox = Inbox(1000, 10_000, lambda: None, lambda: None)
    inbox.put(messages(2, 6_000))
    assert inbox.is_full
    inbox.take(1)
    assert not inbox.is_full


@pytest.fixture(params=[("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket, str]]:
    address, family = request.param
    with socket.socket(family, socket.SOCK_DGRAM) as listener, socket.socket(family, socket.SOCK_DGRAM) as sender:
        try:
            listener.bind((address, 0))
        except OSError as error:
            pytest.skip(f"This machine has no {address}: {error.strerror}")
        listener.setblocking(False)
        sender.connect(listener.getsockname())
        yield listener, sender, address


def test_datagrams_come_with_their_senders(pair: tuple[socket.socket, socket.socket, str]) -> None:
    listener, sender, address = pair
    reader = DatagramReader(listener, 1000)
    assert reader.read() is None
    sent = [b"%d" % number * (number + 1) for number in range(150)]
    for each in sent:
        sender.send(each)
    sender.send(b"")
    found: list[bytes] = []
    while (read := reader.read()) is not None:
        found += read.contents
        assert set(read.senders) == {address}
        assert not read.cut
    assert found == [*sent, b""]
    sender.send(b"y" * 1000)
    sender.send(b"x" * 1001)
    read = reader.read()
    assert read is not None
    assert (read.contents, read.cut) == ([b"y" * 1000, b"x" * 1000], {1})


def test_the_kernel_counts_what_it_drops() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        assert 2048 <= widen_receive_buffer(listener, 20_000) <= 20_000
        listener.bind(("127.0.0.1", 0))
        assert dropped_datagrams(listener) == 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(200):
                sender.sendto(b"x" * 1000, listener.getsockname())
        reader = DatagramReader(listener, 1000)
        received = 0
        while (read := reader.read()) is not None:
            received += len(read.contents)
        assert 0 < received < 200
        wait_until("all are counted", lambda: dropped_datagrams(listener) + received == 200)
