"""The syslog sink's task with receivers that break, do not read, are not trusted or may not be reached."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext
from connect.testing.samples import sink_records
from connectors.syslog import SyslogSinkConfig, SyslogSinkTask
from equipment.brokers.certificates import Authority
from equipment.fakes.syslog_receiver import SyslogReceiver
from equipment.ports import own_port
from equipment.waiting import wait_until

HOST = "127.0.0.1"
PARTITION = TopicPartition("test", 0)


class Sending:
    """A task that runs, with its context."""

    def __init__(self, task: SyslogSinkTask, context: SinkTaskTestContext) -> None:
        self.task, self.context = task, context

    def put(self, *values: object, start: int = 0) -> None:
        """Put a batch whose offsets begin with ``start``."""
        made = sink_records(list(values))
        records = [
            record.replace(offset=start + place, original_offset=start + place) for place, record in enumerate(made)
        ]
        for batch in SinkBatch.from_records(records):
            self.task.put(batch)


@pytest.fixture
def sending() -> Iterator[Callable[..., Sending]]:
    with ExitStack() as started:

        def start(port: int, *, tolerate: bool | None = None, **props: str) -> Sending:
            given = {"syslog.host": HOST, "syslog.port": str(port)}
            config = SyslogSinkConfig.parse(given | {key.replace("_", "."): value for key, value in props.items()})
            context = SinkTaskTestContext([PARTITION])
            if tolerate is not None:
                context.errant_record_reporter = ErrantRecords(tolerate=tolerate)
            task = SyslogSinkTask(config, context)
            started.callback(task.stop)
            task.start()
            return Sending(task, context)

        yield start


@pytest.fixture
def receiver() -> Iterator[SyslogReceiver]:
    with SyslogReceiver(own_port()) as taking:
        yield taking


def texts(receiver: SyslogReceiver, count: int) -> list[str]:
    """The texts that came, once there are so many."""
    wait_until(f"{count} came", lambda: len(receiver.messages) >= count)
    return [message.split(" - - - ", 1)[1] for message in receiver.messages]


def test_what_may_not_have_arrived_is_sent_again_in_its_order(
    sending: Callable[..., Sending], receiver: SyslogReceiver
) -> None:
    sink = sending(receiver.port)
    sink.put("0", "1")
    assert texts(receiver, 2) == ["0", "1"]
    sink.task.flush({PARTITION: 2})
    sink.put("2", "3", start=2)
    assert texts(receiver, 4) == ["0", "1", "2", "3"]
    receiver.close()
    # Nothing of this batch is sent before what was sent since the commit.
    wait_until("it is noticed", lambda: sink.put("4", start=4) or bool(sink.context.rewinds))
    assert sink.context.rewinds == {PARTITION: 2}
    with pytest.raises(RetriableError, match="cannot be connected to: Connection refused"):
        sink.put("2", "3", "4", start=2)
    receiver.open()
    sink.put("2", "3", "4", start=2)
    found = texts(receiver, 7)
    assert found[-3:] == ["2", "3", "4"]
    sink.task.flush({PARTITION: 5})


def test_a_receiver_that_has_gone_is_noticed_at_the_commit(
    sending: Callable[..., Sending], receiver: SyslogReceiver
) -> None:
    sink = sending(receiver.port)
    sink.put("0")
    texts(receiver, 1)
    receiver.close()
    with pytest.raises(RetriableError, match="what was sent since the last commit is sent again"):
        wait_until("it is noticed", lambda: sink.task.flush({PARTITION: 1}))


def test_nothing_is_committed_that_a_receiver_does_not_take(
    sending: Callable[..., Sending], receiver: SyslogReceiver
) -> None:
    receiver.reads.clear()
    sink = sending(receiver.port, syslog_timeout_ms="300")
    values = ["x" * 10_000] * 2_000
    started = time.monotonic()
    with pytest.raises(RetriableError, match=r"it does not take what is sent within 0\.3 s"):
        sink.put(*values)
    assert time.monotonic() - started < 10
    receiver.reads.set()


def test_a_task_that_stops_does_not_wait_for_a_receiver(
    sending: Callable[..., Sending], receiver: SyslogReceiver
) -> None:
    receiver.reads.clear()
    sink = sending(receiver.port)
    stopping = threading.Timer(0.2, sink.context.stop)
    stopping.start()
    with pytest.raises(RetriableError, match="the task stops"):
        sink.put(*["x" * 10_000] * 2_000)
    stopping.join()
    receiver.reads.set()


def test_bad_records_are_reported_and_their_neighbours_sent(
    sending: Callable[..., Sending], receiver: SyslogReceiver
) -> None:
    tolerant = sending(receiver.port, tolerate=True)
    tolerant.put("0", None, "2", 7, "4")
    assert texts(receiver, 3) == ["0", "2", "4"]
    reporter = tolerant.context.errant_record_reporter
    assert reporter is not None
    assert [record.value for record, _ in getattr(reporter, "reported")] == [None, 7]  # noqa: B009 - of the kit's class
    strict = sending(receiver.port)
    with pytest.raises(ConnectError, match=r"The record at offset 1 of test-0 cannot be sent: Its value is null"):
        strict.put("5", None, "7")
    assert texts(receiver, 5)[-2:] == ["5", "7"]


def test_a_certificate_that_is_not_trusted_fails_the_task(sending: Callable[..., Sending], tmp_path: Path) -> None:
    identity = Authority().sign(HOST)
    (tmp_path / "own.pem").write_text(identity.key_pem() + identity.certificate_pem)
    (tmp_path / "ca.pem").write_text(Authority().pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")
    with SyslogReceiver(own_port(), context) as receiver:
        trust = {"syslog.ssl.truststore.location": str(tmp_path / "ca.pem")}
        sink = sending(receiver.port, syslog_protocol="TCPSSL", **trust)
        with pytest.raises(ConnectError, match=r"is not trusted: .*Check the keys syslog\.ssl"):
            sink.put("x")


def test_the_worker_s_rules_for_hosts_hold(sending: Callable[..., Sending], receiver: SyslogReceiver) -> None:
    sink = sending(receiver.port, http_denied_hosts="127.0.0.0/8")
    with pytest.raises(ConnectError, match=r"http\.denied\.hosts in the worker's file denies it"):
        sink.put("x")
    assert receiver.messages == []


def test_a_host_that_does_not_exist_is_tried_again(sending: Callable[..., Sending]) -> None:
    sink = sending(own_port(), syslog_host="no-such-host.invalid")
    with pytest.raises(RetriableError, match=r"The host no-such-host\.invalid cannot be found"):
        sink.put("x")
    with socket.socket() as closed:
        closed.bind((HOST, 0))
        refused = sending(closed.getsockname()[1], retry_backoff_ms="70")
        with pytest.raises(RetriableError) as caught:
            refused.put("x")
    assert caught.value.retry_after == 0.07
