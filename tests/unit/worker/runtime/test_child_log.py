"""What leaves a child process as text, and how."""

from __future__ import annotations

import logging
import os
import threading
from multiprocessing.connection import Connection, Pipe

import pytest

from connect.internals.kafka.auth.jaas import client_secrets
from worker.messages import messages
from worker.messages.messages import LogRecord, decode
from worker.runtime.link import Line, Link
from worker.runtime.log import PipeHandler
from worker.security.redaction import Redaction


class Logged:
    """A logger whose lines come out of a pipe."""

    def __init__(self, redaction: Redaction) -> None:
        self.worker: Connection
        self.worker, child = Pipe()
        self.link = Link(Line(child, on_orphaned=lambda: None))
        self.handler = PipeHandler(self.link, redaction)
        self.logger = logging.Logger("a.plugin")
        self.logger.addHandler(self.handler)

    def text(self) -> str:
        report = decode(self.worker.recv_bytes())
        assert isinstance(report, LogRecord)
        return report.text


@pytest.fixture
def redaction() -> Redaction:
    redaction = Redaction()
    redaction.add(['hun"ter\\2'])
    return redaction


@pytest.mark.parametrize("shown", ['hun"ter\\2', repr('hun"ter\\2'), 'hun\\"ter\\\\2', "hun%22ter%5C2"])
def test_a_secret_is_hidden_in_every_form_it_shows_in(redaction: Redaction, shown: str) -> None:
    line = Logged(redaction)
    line.logger.warning("login %s failed", shown)
    assert "ter" not in line.text()


def test_a_line_that_cannot_be_made_holds_no_secret_and_says_what_is_wrong(
    redaction: Redaction, capfd: pytest.CaptureFixture[str]
) -> None:
    line = Logged(redaction)
    line.logger.warning("%d records", 'hun"ter\\2')
    text = line.text()
    assert text.startswith("%d records (this line of the log cannot be made from its arguments: TypeError")
    assert "hun" not in text
    assert capfd.readouterr().err == "", "nothing goes past the redaction"


def test_a_line_may_hold_what_utf8_cannot_say_and_is_bounded(redaction: Redaction) -> None:
    line = Logged(redaction)
    line.logger.warning("caf\udce9.txt")
    assert line.text() == "caf\\udce9.txt"
    line.logger.warning("a" * 1_000_000 + 'hun"ter\\2')
    text = line.text()
    assert len(text) < 70_000
    assert text.endswith("a[hidden]")


def test_a_line_that_is_logged_while_another_is_sent_does_not_deadlock(redaction: Redaction) -> None:
    """Finalizers and signal handlers run in the middle of anything."""
    line = Logged(redaction)

    class Interrupting(Connection):
        def send_bytes(self, buf: bytes, offset: int = 0, size: int | None = None) -> None:  # type: ignore[override]
            if b"outer" in buf:
                line.link.send(messages.LogRecord("a", 20, 0.0, "inner"))
            super().send_bytes(buf)

    worker, child = Pipe()
    line.link = Link(Line(Interrupting(os.dup(child.fileno())), on_orphaned=lambda: None))
    sender = threading.Thread(target=lambda: line.link.send(messages.LogRecord("a", 20, 0.0, "outer")), daemon=True)
    sender.start()
    sender.join(10)
    assert not sender.is_alive()
    assert [decode(worker.recv_bytes()).text for _ in range(2)] == ["outer", "inner"]


def test_lines_of_many_threads_arrive_whole(redaction: Redaction) -> None:
    line = Logged(redaction)
    threads = [
        threading.Thread(target=lambda n=n: [line.logger.warning("%d %s", n, "x" * 20_000) for _ in range(20)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    texts = [line.text() for _ in range(160)]
    for thread in threads:
        thread.join()
    assert {len(text) for text in texts} == {20_002}


def test_the_secrets_of_kafka_clients_are_known_under_every_prefix() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p w";'
    props = {
        "producer.override.sasl.jaas.config": jaas,
        "consumer.ssl.key.password": "k",
        "ssl.truststore.password": "t",
        "ssl.truststore.location": "/here",
        "topics": "x",
    }
    assert list(client_secrets(props)) == [jaas, "p w", "k", "t"]
