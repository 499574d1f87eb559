"""Fixtures of what a task has of its worker: a pipe, and the control at its other end."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

import pytest

from worker.messages import messages
from worker.messages.messages import encode
from worker.runtime.control import Control
from worker.runtime.link import Line, Link


@pytest.fixture
def pipe() -> Iterator[tuple[Connection, Control]]:
    """The worker's end of the pipe, and what a task has of the other."""
    worker, child = Pipe()
    worker.send_bytes(encode(messages.Resume()))
    link = Link(Line(child, lambda: None))
    link.open()
    yield worker, Control(link)
    worker.close()


@pytest.fixture
def worker(pipe: tuple[Connection, Control]) -> Connection:
    return pipe[0]


@pytest.fixture
def control(pipe: tuple[Connection, Control]) -> Control:
    return pipe[1]
