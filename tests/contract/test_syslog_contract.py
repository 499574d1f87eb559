"""The syslog connectors keep the contract."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connectors.syslog import RelpSourceConnector, SyslogSinkConnector, SyslogSourceConnector
from equipment.brokers.certificates import Authority
from equipment.fakes.syslog_receiver import SyslogReceiver
from equipment.fakes.syslog_senders import RepeatingSender
from equipment.ports import own_port
from equipment.proofs import thorough
from equipment.waiting import wait_until

LINES = [
    b'<156>1 2026-11-22T06:31:18.639343+00:00 vm app 7 - [quality known="%d"] message %d' % (number % 2, number)
    for number in range(12)
]


class _ListenerTests(SourceConnectorTests):
    """A listener has no positions: a sender that has no acknowledgement sends everything again."""

    record_count = len(LINES)
    resumes_exactly = False

    def identity(self, record: SourceRecord) -> object:
        """The message: the offset counts those of a task."""
        return record.value["message"]


class TestSyslogSource(_ListenerTests):
    """Streams and datagrams."""

    connector_class = SyslogSourceConnector

    @pytest.fixture(params=["TCP", *thorough("UDP", "TCPSSL")])
    def props(self, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
        port = own_port()
        props = {"syslog.listener": request.param, "syslog.port": str(port), "syslog.listen.address": "127.0.0.1"}
        if request.param == "TCPSSL":
            props["syslog.ssl.self.signed.certificate.enable"] = "true"
        with RepeatingSender(request.param, port, LINES):
            yield props


class TestRelpSource(_ListenerTests):
    """Sessions with acknowledgements."""

    connector_class = RelpSourceConnector

    @pytest.fixture
    def props(self) -> Iterator[Mapping[str, str]]:
        port = own_port()
        with RepeatingSender("RELP", port, LINES):
            yield {"syslog.port": str(port), "syslog.listen.address": "127.0.0.1"}


class TestSyslogSink(SinkConnectorTests):
    """Texts over TCP and TLS."""

    connector_class = SyslogSinkConnector

    @pytest.fixture(params=["TCP", *thorough("TCPSSL")])
    def receiver(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyslogReceiver]:
        context = None
        if request.param == "TCPSSL":
            authority = Authority()
            identity = authority.sign("127.0.0.1")
            (tmp_path / "ca.pem").write_text(authority.pem)
            (tmp_path / "own.pem").write_text(identity.key_pem() + identity.certificate_pem)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tmp_path / "own.pem")
        with SyslogReceiver(own_port(), context) as receiver:
            yield receiver

    @pytest.fixture
    def props(self, receiver: SyslogReceiver, tmp_path: Path) -> Mapping[str, str]:
        props = {"syslog.host": "127.0.0.1", "syslog.port": str(receiver.port), "retry.backoff.ms": "10"}
        if (tmp_path / "ca.pem").exists():
            props |= {"syslog.protocol": "TCPSSL", "syslog.ssl.truststore.location": str(tmp_path / "ca.pem")}
        return props

    @pytest.fixture
    def written(self, receiver: SyslogReceiver) -> Callable[[], Iterable[Any]]:
        def texts() -> list[str]:
            return [message.split(" - - - ", 1)[1] for message in receiver.messages]

        def settled() -> list[str]:
            last: list[str] = []

            def is_still() -> bool:
                before, last[:] = list(last), texts()
                return bool(last) and before == last

            wait_until("no more comes", is_still)
            return last

        return settled

    @pytest.fixture
    def outage(self, receiver: SyslogReceiver) -> AbstractContextManager[object]:
        @contextmanager
        def away() -> Iterator[None]:
            receiver.close()
            yield
            receiver.open()

        return away()
