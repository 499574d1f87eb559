"""The lines of the log for records that were given up."""

from __future__ import annotations

import logging

import pytest

from connect.data import SourceRecord
from connect.errors import DataError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import Failure, Stage
from worker.config.connector import SourceConnectorConfig
from worker.runtime.log import LogReporter

LOGGED = {"name": "c", "connector.class": "C", "errors.tolerance": "all", "errors.log.enable": "true"}


def test_the_log_line_tells_where_the_record_is(caplog: pytest.LogCaptureFixture) -> None:
    logs = SourceConnectorConfig.parse(LOGGED)
    raw = RawRecord("t", 1, 7, 99, "CreateTime", b"secret-key", b"secret-value", ())
    with caplog.at_level(logging.ERROR):
        LogReporter("c", 0, logs).report(Failure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), raw=raw))
    assert caplog.messages == [
        "Error encountered in task c-0. Executing stage 'VALUE_CONVERTER' with class 'a.B', where consumed record is "
        "{topic='t', partition=1, offset=7, timestamp=99, timestampType=CreateTime}."
    ]


def test_the_log_holds_records_only_when_asked_to(caplog: pytest.LogCaptureFixture) -> None:
    failure = Failure(Stage.TRANSFORMATION, "a.B", DataError("no"), record=SourceRecord("t", "payload"))
    with caplog.at_level(logging.ERROR):
        LogReporter("c", 0, SourceConnectorConfig.parse(LOGGED)).report(failure)
        assert "payload" not in caplog.text
        with_messages = SourceConnectorConfig.parse({**LOGGED, "errors.log.include.messages": "true"})
        LogReporter("c", 0, with_messages).report(failure)
    assert "payload" in caplog.text
