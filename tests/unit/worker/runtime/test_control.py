"""How a task waits for the worker, and for descriptors of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

import pytest

from worker.runtime.control import Control, Link
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import encode

DEADLINE = 30.0


@pytest.fixture
def pipe() -> Iterator[tuple[Connection, Control]]:
    """The worker's end of the pipe, and what a task has of the other."""
    worker, child = Pipe()
    worker.send_bytes(encode(messages.Resume()))
    link = Link(child, lambda: None)
    link.open()
    yield worker, Control(link)
    worker.close()


@pytest.fixture
def worker(pipe: tuple[Connection, Control]) -> Connection:
    return pipe[0]


@pytest.fixture
def control(pipe: tuple[Connection, Control]) -> Control:
    return pipe[1]


def test_a_wait_for_a_descriptor_ends_when_it_can_be_read(control: Control) -> None:
    reader, writer = os.pipe()
    assert not control.wait_readable([reader], 0.0)
    os.write(writer, b"x")
    assert control.wait_readable([reader], DEADLINE)
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_a_wait_for_a_descriptor_ends_when_the_worker_says_something(worker: Connection, control: Control) -> None:
    reader, writer = os.pipe()
    control.wait_readable([reader], 0.0)
    for command in (messages.Pause(), messages.Resume(), messages.Stop()):
        told = threading.Thread(target=worker.send_bytes, args=[encode(command)])
        told.start()
        before = control.paused, control.stopping
        while (control.paused, control.stopping) == before:
            assert not control.wait_readable([reader], DEADLINE)
        told.join()
    assert control.stopping
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_what_was_said_before_a_wait_ends_it(worker: Connection, control: Control) -> None:
    worker.send_bytes(encode(messages.Stop()))
    while not control.stopping:
        assert not control.wait_readable([], DEADLINE)
