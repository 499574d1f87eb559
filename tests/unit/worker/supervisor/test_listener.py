"""Waiting for many children at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from multiprocessing.connection import Pipe

import pytest

from worker.messages import messages
from worker.supervisor.pipe import Listener, WorkerEnd

DEADLINE = 10.0


class Child:
    """What is listened to: the worker's end of a pipe, whose other end the test has."""

    def __init__(self) -> None:
        ours, self.theirs = Pipe()
        self.pipe = WorkerEnd(ours)
        self.sentinel: int | None = None
        self.output: int | None = None

    def say(self) -> None:
        self.theirs.send_bytes(messages.encode(messages.Paused()))

    def close(self) -> None:
        self.pipe.close()
        self.theirs.close()


@pytest.fixture
def children() -> Iterator[list[Child]]:
    made = [Child(), Child()]
    yield made
    for child in made:
        child.close()


def test_those_that_say_something_are_told_until_it_is_heard(children: list[Child]) -> None:
    listening = Listener[Child]()
    first, second = children
    assert listening.ready(children, 0) == []
    second.say()
    assert listening.ready(children, DEADLINE) == [second]
    assert listening.ready(children, DEADLINE) == [second]
    assert list(second.pipe.receive()) == [messages.Paused()]
    assert listening.ready(children, 0) == []
    first.theirs.close()
    assert listening.ready(children, DEADLINE) == [first]


def test_one_whose_descriptor_has_the_number_of_another_that_is_gone_is_heard(children: list[Child]) -> None:
    listening = Listener[Child]()
    assert listening.ready(children, 0) == []
    number = children[0].pipe.fileno()
    children[0].close()
    later = Child()
    assert later.pipe.fileno() == number
    children[0] = later
    later.say()
    assert listening.ready(children, DEADLINE) == [later]


def test_one_that_is_not_asked_for_any_more_is_not_told(children: list[Child]) -> None:
    listening = Listener[Child]()
    assert listening.ready(children, 0) == []
    for child in children:
        child.say()
    assert listening.ready(children[:1], DEADLINE) == [children[0]]


def test_what_a_full_pipe_did_not_take_is_sent_when_it_does(children: list[Child]) -> None:
    listening = Listener[Child]()
    child, heard = children[0], list[bytes]()
    for _ in range(20_000):
        child.pipe.send(messages.Fail("x" * 100))
    assert child.pipe.waits_to_send
    hears = threading.Thread(target=lambda: heard.extend(child.theirs.recv_bytes() for _ in range(20_000)))
    hears.start()
    while child.pipe.waits_to_send:
        assert listening.ready([child], DEADLINE) == []
    hears.join(DEADLINE)
    assert len(heard) == 20_000
    assert listening.ready([child], 0) == []


def test_a_descriptor_that_wakes_is_nobodys(children: list[Child]) -> None:
    reader, writer = os.pipe()
    listening = Listener[Child](reader)
    os.write(writer, b"w")
    assert listening.ready(children, DEADLINE) == []
    os.close(reader)
    os.close(writer)


def test_a_pipe_and_what_is_printed_are_one_childs(children: list[Child]) -> None:
    reader, writer = os.pipe()
    children[0].output = reader
    listening = Listener[Child]()
    os.write(writer, b"printed")
    children[0].say()
    assert listening.ready(children, DEADLINE) == [children[0]]
    children[0].output = None
    os.close(reader)
    os.close(writer)
    assert list(children[0].pipe.receive()) == [messages.Paused()]
    assert listening.ready(children, 0) == []


def test_one_without_a_process_is_passed_over() -> None:
    nobody = Child()
    nobody.close()
    assert Listener[Child]().ready([nobody], 0) == []
