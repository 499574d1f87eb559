"""How a task waits for the worker, and for descriptors of its own."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest

from connect.internals.chain.tolerance import StopRequested
from equipment.waiting import wait_until
from worker.messages import messages
from worker.messages.messages import decode, encode
from worker.runtime.control import Control
from worker.runtime.offsets.offsets import WorkerOffsetReader

DEADLINE = 30.0


def test_a_wait_for_a_descriptor_ends_when_it_can_be_read(control: Control) -> None:
    reader, writer = os.pipe()
    assert not control.wait_for_poll([reader], 0.0)
    os.write(writer, b"x")
    assert control.wait_for_poll([reader], DEADLINE)
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_a_wait_for_a_descriptor_ends_when_the_worker_says_something(worker: Connection, control: Control) -> None:
    reader, writer = os.pipe()
    control.wait_for_poll([reader], 0.0)
    for command in (messages.Pause(), messages.Resume(), messages.Stop()):
        told = threading.Thread(target=worker.send_bytes, args=[encode(command)])
        told.start()
        before = control.paused, control.stopping
        while (control.paused, control.stopping) == before:
            assert not control.wait_for_poll([reader], DEADLINE)
        told.join()
    assert control.stopping
    for descriptor in (reader, writer):
        os.close(descriptor)


@pytest.mark.parametrize("waits_for", ["a descriptor", "nothing"])
def test_a_wait_ends_when_the_task_is_woken_once_for_all_that_was_said_before(control: Control, waits_for: str) -> None:
    reader, writer = os.pipe()
    descriptors = [reader] if waits_for == "a descriptor" else []
    assert not control.wait_for_poll(descriptors, 0.0)
    for _ in range(3):
        control.wake()
    while not control.wait_for_poll(descriptors, DEADLINE):
        pass
    assert not control.wait_for_poll(descriptors, 0.0)
    waker = threading.Timer(0.01, control.wake)
    waker.start()
    while not control.wait_for_poll(descriptors, DEADLINE):
        pass
    waker.join()
    control.wake()
    assert control.poll(), "what is found meanwhile is kept"
    assert control.wait_for_poll([], DEADLINE)
    for descriptor in (reader, writer):
        os.close(descriptor)


def test_what_was_said_before_a_wait_ends_it(worker: Connection, control: Control) -> None:
    worker.send_bytes(encode(messages.Stop()))
    while not control.stopping:
        assert not control.wait_for_poll([], DEADLINE)


def test_source_offsets_are_waited_for_until_the_worker_sends_them_or_the_task_is_to_stop(
    worker: Connection, control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    reader = WorkerOffsetReader(control, patience=0.01)
    with ThreadPoolExecutor(1) as task:
        offset = task.submit(reader.offset, {"file": "a"})
        asked = decode(worker.recv_bytes())
        wait_until("it is told", lambda: "Still waiting for the source offsets" in caplog.text)
        worker.send_bytes(encode(messages.OffsetsRead(asked.request, [{"position": 5}], None)))
        assert offset.result(DEADLINE) == {"position": 5}
        stopped = task.submit(reader.offset, {"file": "a"})
        worker.send_bytes(encode(messages.Stop()))
        with pytest.raises(StopRequested):
            stopped.result(DEADLINE)
