"""Records as messages of RFC 5424."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from connect.data import SinkRecord
from connect.errors import DataError
from connectors.syslog.message import FIELDS, MessageParser
from connectors.syslog.sink_config import SyslogSinkConfig
from connectors.syslog.sink_messages import MessageWriter

PROPS = {"syslog.host": "logs.example.com", "syslog.port": "601", "syslog.host.name": "vm"}
NOW = dt.datetime(2026, 11, 28, 22, 0, tzinfo=dt.UTC)


def written(value: Any, *, timestamp: int | None = 1_700_000_000_123, **more: str) -> str:
    """The message of a value, without its length, which is right."""
    config = SyslogSinkConfig.parse({**PROPS, **{key.replace("_", "."): each for key, each in more.items()}})
    record = SinkRecord(
        "logs", value, timestamp=timestamp, original_topic="logs", original_partition=3, original_offset=7
    )
    length, _, line = MessageWriter(config).write(record).partition(b" ")
    assert int(length) == len(line)
    return line.decode()


def test_texts() -> None:
    assert written("Grüße\nalle") == "<13>1 2023-11-14T22:13:20.123Z vm sluice - - - Grüße\nalle"
    assert written(b"bytes", timestamp=None) == "<13>1 - vm sluice - - - bytes"
    assert written("") == "<13>1 2023-11-14T22:13:20.123Z vm sluice - - -"
    more = {"syslog_facility": "local3", "syslog_severity": "4", "syslog_app_name": "shop"}
    assert written("x", **more).startswith("<156>1 2023-11-14T22:13:20.123Z vm shop ")
    assert written("x", syslog_position_enable="true").endswith(
        ' - - [kafka@32473 topic="logs" partition="3" offset="7"] x'
    )


@pytest.mark.parametrize(
    "line",
    [
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - Your refrigerator is running",
        '<165>1 2003-08-24T12:14:15.000Z 192.0.2.1 myproc 8710 - [a@1 k="v\\"\\]\\\\x"][b] msg',
        "<0>1 2003-08-24T12:14:15.000Z h a - - - x",
    ],
)
def test_what_the_source_has_read_is_written_as_it_was(line: str) -> None:
    assert written(dict(zip(FIELDS, MessageParser().parse(line, "10.0.0.1", NOW), strict=True))) == line


def test_a_timestamp_beyond_all_years_is_none() -> None:
    assert written("x", timestamp=(1 << 63) - 1).startswith("<13>1 - vm ")


def test_messages_of_the_old_form_and_of_others() -> None:
    old = MessageParser(dt.UTC).parse("<156>Nov 22 06:31:18 web app[12]: x", "10.0.0.1", NOW)
    assert written(dict(zip(FIELDS, old, strict=True))) == "<156>1 2026-11-22T06:31:18.000Z web app 12 - - x"
    assert written({"message": "x", "level": 0}) == "<8>1 2023-11-14T22:13:20.123Z vm sluice - - - x"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "Its value is null"),
        (7, "Its value is a int"),
        ({"text": "x"}, "without a text in the field message"),
        ({"message": 7}, "without a text in the field message"),
        (b"\xff", "no text in UTF-8"),
        ({"message": "x", "host": "a b"}, "Its field host is 'a b'"),
        ({"message": "x", "appName": "a" * 49}, "Its field appName is"),
        ({"message": "x", "host": 7}, "Its field host is a int"),
        ({"message": "x", "level": 8}, "Its field level is 8"),
        ({"message": "x", "facility": True}, "Its field facility is True"),
        ({"message": "x", "date": "today"}, "Its field date is no Timestamp"),
        ({"message": "x", "structuredData": [{"id": "a b"}]}, "has the name 'a b'"),
        ({"message": "x", "structuredData": [{}]}, "an element without id"),
        ({"message": "x", "structuredData": "x"}, "is no list of elements"),
        (
            {"message": "x", "date": dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))},
            "of no year from 1 to 9999",
        ),
        ("x" * 500, "syslog.message.max.bytes allows 480"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_what_cannot_be_a_message_is_a_bad_record(value: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        written(value, syslog_message_max_bytes="480")
