"""The syslog connectors keep the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from connect.data import SourceRecord
from connect.testing import SourceConnectorTests
from connectors.syslog import RelpSourceConnector, SyslogSourceConnector
from equipment.fakes.syslog_senders import RepeatingSender
from equipment.ports import own_port
from equipment.proofs import thorough

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
