"""What lines say, as senders write them, and as nobody should."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import validate
from connectors.syslog.message import FIELDS, MESSAGE_SCHEMA, MessageParser
from equipment.growth import assert_grows_evenly

NOW = dt.datetime(2026, 11, 28, 22, 0, tzinfo=dt.UTC)
PARSER = MessageParser(dt.UTC)


def parsed(line: str, parser: MessageParser = PARSER, now: dt.datetime = NOW) -> dict[str, Any]:
    """The fields that are set, without those that every message has."""
    row = dict(zip(FIELDS, parser.parse(line, "10.0.0.1", now), strict=True))
    assert row.pop("rawMessage") == line
    assert row.pop("remoteAddress") == "10.0.0.1"
    return {name: value for name, value in row.items() if value is not None}


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def test_confluent_s_own_example() -> None:
    line = "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - Your refrigerator is running"
    assert parsed(line) == {
        "type": "RFC5424",
        "date": utc("2003-10-11T22:14:15.003"),
        "facility": 4,
        "level": 2,
        "host": "mymachine.example.com",
        "message": "Your refrigerator is running",
        "version": 1,
        "appName": "su",
        "messageId": "ID47",
    }


def test_structured_data() -> None:
    line = '<165>1 2003-08-24T05:14:15.000003-07:00 10.0.0.2 my 8710 - [a@1 k="v\\"\\]\\\\x" c:\\k="d\\e"][b] \ufeffmsg'
    found = parsed(line)
    assert found["structuredData"] == [
        {"id": "a@1", "structuredDataElements": {"k": 'v"]\\x', "c:\\k": "d\\e"}},
        {"id": "b", "structuredDataElements": {}},
    ]
    assert (found["message"], found["processId"]) == ("msg", "8710")
    assert found["date"] == utc("2003-08-24T12:14:15")


def test_what_logger_and_rsyslog_send() -> None:
    common = {"facility": 19, "level": 4, "host": "vm"}
    at = utc("2026-11-22T06:31:18.639")
    quality = {"id": "timeQuality", "structuredDataElements": {"tzKnown": "1", "isSynced": "0"}}
    assert parsed('<156>1 2026-11-22T06:31:18.639343+00:00 vm app - - [timeQuality tzKnown="1" isSynced="0"] MSG') == {
        **common,
        "type": "RFC5424",
        "version": 1,
        "date": at,
        "appName": "app",
        "message": "MSG",
        "structuredData": [quality],
    }
    second = utc("2026-11-22T06:31:18")
    old = {**common, "type": "RFC3164", "tag": "app"}
    assert parsed("<156>Nov 22 06:31:18 vm app: MSG") == {**old, "date": second, "message": "MSG"}
    forwarded = "<156>2026-11-22T06:31:18.639343+00:00 vm app: hello"
    assert parsed(forwarded) == {**old, "date": at, "message": "hello"}
    assert parsed("<13>1 - - app - - - x") == {
        "type": "RFC5424",
        "version": 1,
        "date": NOW,
        "facility": 1,
        "level": 5,
        "appName": "app",
        "message": "x",
    }
    assert parsed("<156>1 2026-11-22T06:31:18.639343+00:00 vm app 7 - -  hello")["message"] == "hello"
    loggen = parsed("<38>2026-11-22T06:31:18 localhost prg00000[1234]: seq: 1")
    assert loggen == {
        "type": "RFC3164",
        "date": second,
        "facility": 4,
        "level": 6,
        "host": "localhost",
        "tag": "prg00000",
        "processId": "1234",
        "message": "seq: 1",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "<189>45: *Mar  1 00:00:45.123: %SYS-5-CONFIG_I: Configured",
            {"date": utc("2026-03-01T00:00:45.123"), "tag": "%SYS-5-CONFIG_I", "message": "Configured"},
        ),
        (
            "<189>Nov 22 2024 06:31:18: %ASA-6-302013: Built",
            {"date": utc("2024-11-22T06:31:18"), "tag": "%ASA-6-302013", "message": "Built"},
        ),
        (
            "<189>Nov 22 06:31:18 2024 fw x: y",
            {"date": utc("2024-11-22T06:31:18"), "host": "fw", "tag": "x", "message": "y"},
        ),
        (
            "<189>Nov 22 06:31:18 CEST fw x: y",
            {"date": utc("2026-11-22T04:31:18"), "host": "fw", "tag": "x", "message": "y"},
        ),
        ("<189>Nov 22 06:31:18 app: y", {"date": utc("2026-11-22T06:31:18"), "tag": "app", "message": "y"}),
        (
            "<189>Nov  2 06:31:18 fe80::1 a/b.c[12]: y: z",
            {
                "date": utc("2026-11-02T06:31:18"),
                "host": "fe80::1",
                "tag": "a/b.c",
                "processId": "12",
                "message": "y: z",
            },
        ),
        (
            '<189>Nov 22 06:31:18 fw {"a": 1}',
            {"date": utc("2026-11-22T06:31:18"), "host": "fw", "message": '{"a": 1}'},
        ),
        ("<189>hello", {"date": NOW, "message": "hello"}),
        ("<189>root: hello", {"date": NOW, "tag": "root", "message": "hello"}),
        ("<189>", {"date": NOW, "message": ""}),
    ],
)
def test_lines_in_the_wild(line: str, expected: dict[str, Any]) -> None:
    assert parsed(line) == {"type": "RFC3164", "facility": 23, "level": 5, **expected}


def test_without_a_priority_it_is_a_notice_of_a_user() -> None:
    found = parsed("Nov  2 06:31:18 vm app[3]: x")
    assert (found["type"], found["facility"], found["level"], found["message"]) == ("RFC3164", 1, 5, "x")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hello world", {"message": "hello world"}),
        ("<192>x", {"message": "<192>x"}),
        ("<34>1 2026-13-45T22:14:15.003Z h a - - - x", {"facility": 4, "level": 2}),
        ('<34>1 2026-11-22T22:14:15Z h a - - [bad x="1" x', {"facility": 4, "level": 2}),
        ("<34>1 2026-11-22T22:14:15Z h a", {"facility": 4, "level": 2}),
        ("<34>1 9999-12-31T23:59:59-12:00 h a - - - x", {"facility": 4, "level": 2}),
        ("<34>1 0001-01-01T00:00:00+12:00 h a - - - x", {"facility": 4, "level": 2}),
        ("<34>1 0000-01-01T00:00:00Z h a - - - x", {"facility": 4, "level": 2}),
    ],
)
def test_lines_of_no_known_form_are_kept(line: str, expected: dict[str, Any]) -> None:
    found = parsed(line)
    message = expected.get("message", line.removeprefix("<34>"))
    assert found == {"type": "UNKNOWN", "date": NOW, **expected, "message": message}


def test_events_of_cef() -> None:
    body = r"CEF:0|Sec\|urity|threat|1.0|100|worm|10|src=10.0.0.1 msg=a b\=c\nd cs1Label=x cs1=foo bar src=10.0.0.2"
    expected = {
        "deviceVendor": "Sec|urity",
        "deviceProduct": "threat",
        "deviceVersion": "1.0",
        "severity": "10",
        "deviceEventClassId": "100",
        "name": "worm",
        "message": body,
        "extension": {"src": "10.0.0.2", "msg": "a b=c\nd", "cs1Label": "x", "cs1": "foo bar"},
    }
    old = parsed(f"<134>Nov 22 06:31:18 fw {body}")
    head = {"type": "CEF", "facility": 16, "level": 6}
    assert old == {**head, "date": utc("2026-11-22T06:31:18"), "host": "fw", **expected}
    new = parsed(f"<134>1 2026-11-22T06:31:18Z fw app - - - {body}")
    assert new == {**old, "version": 1, "appName": "app"}
    assert parsed(body) == {"type": "CEF", "date": NOW, "facility": 1, "level": 5, **expected}
    assert parsed("<134>CEF:0|a|b")["type"] == "RFC3164"
    assert parsed("CEF:0|V|P|1|2|n|Low|")["extension"] == {}


RFC5424_EXAMPLES = {
    # Section 6.5.
    "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \ufeff"
    "'su root' failed for lonvick on /dev/pts/8": {
        "facility": 4,
        "level": 2,
        "date": utc("2003-10-11T22:14:15.003"),
        "host": "mymachine.example.com",
        "appName": "su",
        "messageId": "ID47",
        "message": "'su root' failed for lonvick on /dev/pts/8",
    },
    "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.": {
        "facility": 20,
        "level": 5,
        "date": utc("2003-08-24T12:14:15"),
        "host": "192.0.2.1",
        "appName": "myproc",
        "processId": "8710",
        "message": "%% It's time to make the do-nuts.",
    },
    '<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource='
    '"Application" eventID="1011"] \ufeffAn application event log entry...': {
        "facility": 20,
        "level": 5,
        "date": utc("2003-10-11T22:14:15.003"),
        "host": "mymachine.example.com",
        "appName": "evntslog",
        "messageId": "ID47",
        "structuredData": [
            {
                "id": "exampleSDID@32473",
                "structuredDataElements": {"iut": "3", "eventSource": "Application", "eventID": "1011"},
            }
        ],
        "message": "An application event log entry...",
    },
    '<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource='
    '"Application" eventID="1011"][examplePriority@32473 class="high"]': {
        "facility": 20,
        "level": 5,
        "date": utc("2003-10-11T22:14:15.003"),
        "host": "mymachine.example.com",
        "appName": "evntslog",
        "messageId": "ID47",
        "structuredData": [
            {
                "id": "exampleSDID@32473",
                "structuredDataElements": {"iut": "3", "eventSource": "Application", "eventID": "1011"},
            },
            {"id": "examplePriority@32473", "structuredDataElements": {"class": "high"}},
        ],
    },
}
"""The examples of the standard, and what they say."""


@pytest.mark.parametrize("line", RFC5424_EXAMPLES)
def test_the_examples_of_rfc_5424(line: str) -> None:
    assert parsed(line) == {"type": "RFC5424", "version": 1, **RFC5424_EXAMPLES[line]}


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        ("1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520"),
        ("1985-04-12T19:20:50.52-04:00", "1985-04-12T23:20:50.520"),
        ("2003-10-11T22:14:15.003Z", "2003-10-11T22:14:15.003"),
        ("2003-08-24T05:14:15.000003-07:00", "2003-08-24T12:14:15"),
    ],
)
def test_the_times_of_rfc_5424(stamp: str, moment: str) -> None:
    assert parsed(f"<34>1 {stamp} h a - - - x")["date"] == utc(moment)


RFC3164_EXAMPLES = {
    # Section 5.4.
    "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8": {
        "type": "RFC3164",
        "facility": 4,
        "level": 2,
        "date": utc("2026-10-11T22:14:15"),
        "host": "mymachine",
        "tag": "su",
        "message": "'su root' failed for lonvick on /dev/pts/8",
    },
    "Use the BFG!": {"type": "UNKNOWN", "date": NOW, "message": "Use the BFG!"},
    "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!": {
        "type": "RFC3164",
        "facility": 1,
        "level": 5,
        "date": utc("2026-02-05T17:32:18"),
        "host": "10.0.0.99",
        "message": "Use the BFG!",
    },
}
"""The examples of the standard, and what they say."""


@pytest.mark.parametrize("line", RFC3164_EXAMPLES)
def test_the_examples_of_rfc_3164(line: str) -> None:
    assert parsed(line) == RFC3164_EXAMPLES[line]


@pytest.mark.parametrize(
    ("line", "name", "extension"),
    [
        (
            "Sep 19 08:26:10 host CEF:0|Security|threatmanager|1.0|100|worm successfully stopped|10|"
            "src=10.0.0.1 dst=2.1.2.2 spt=1232",
            "worm successfully stopped",
            {"src": "10.0.0.1", "dst": "2.1.2.2", "spt": "1232"},
        ),
        (
            r"Sep 19 08:26:10 host CEF:0|Security|threatmanager|1.0|100|detected a \| in message|10|src=10.0.0.1 "
            "act=blocked a | dst=1.1.1.1",
            "detected a | in message",
            {"src": "10.0.0.1", "act": "blocked a |", "dst": "1.1.1.1"},
        ),
        (
            r"Sep 19 08:26:10 host CEF:0|Security|threatmanager|1.0|100|detected a \\ in packet|10|src=10.0.0.1 "
            r"act=blocked a \\ dst=1.1.1.1",
            "detected a \\ in packet",
            {"src": "10.0.0.1", "act": "blocked a \\", "dst": "1.1.1.1"},
        ),
        (
            "Sep 19 08:26:10 host CEF:0|Security|threatmanager|1.0|100|detected a = in message|10|src=10.0.0.1 "
            r"act=blocked a \= dst=1.1.1.1",
            "detected a = in message",
            {"src": "10.0.0.1", "act": "blocked a =", "dst": "1.1.1.1"},
        ),
        (
            "Sep 19 08:26:10 host CEF:0|Security|threatmanager|1.0|100|Detected a threat. No action needed|10|"
            r"src=10.0.0.1 msg=Detected a threat.\n No action needed",
            "Detected a threat. No action needed",
            {"src": "10.0.0.1", "msg": "Detected a threat.\n No action needed"},
        ),
    ],
)
def test_the_examples_of_cef(line: str, name: str, extension: dict[str, str]) -> None:
    found = parsed(line)
    assert (found["type"], found["date"], found["deviceVendor"]) == ("CEF", utc("2026-09-19T08:26:10"), "Security")
    assert (found["host"], found["name"], found["extension"]) == ("host", name, extension)


def test_a_date_without_a_year_is_of_the_last_year() -> None:
    assert parsed("<13>Dec 31 23:00:00 h t: x")["date"] == utc("2025-12-31T23:00:00")
    january = dt.datetime(2027, 1, 1, 0, 30, tzinfo=dt.UTC)
    assert parsed("<13>Dec 31 23:59:59 h t: x", now=january)["date"] == utc("2026-12-31T23:59:59")
    december = dt.datetime(2026, 12, 31, 23, 59, tzinfo=dt.UTC)
    assert parsed("<13>Jan  1 00:00:01 h t: x", now=december)["date"] == utc("2027-01-01T00:00:01")


def test_a_date_without_a_zone_is_of_the_given_zone() -> None:
    berlin = MessageParser(ZoneInfo("Europe/Berlin"))
    assert parsed("<13>Jul  1 12:00:00 h t: x", berlin)["date"] == utc("2026-07-01T10:00:00")
    assert parsed("<13>2026-07-01T12:00:00 h t: x", berlin)["date"] == utc("2026-07-01T10:00:00")
    assert parsed("<13>2026-07-01T12:00:00Z h t: x", berlin)["date"] == utc("2026-07-01T12:00:00")


@given(
    st.one_of(
        st.text(max_size=80),
        st.text(alphabet='<>0123456789 -:T.Z[]="\\|CEF', max_size=120).map(lambda text: f"<13>1 {text}"),
        st.from_regex(r"<\d{1,3}>(1 )?[A-Z][a-z]{2} [0-9 ]\d \d\d:\d\d:\d\d .{0,20}", fullmatch=True),
    )
)
def test_every_line_fits_the_schema(line: str) -> None:
    row = dict(zip(FIELDS, PARSER.parse(line, "10.0.0.1", NOW), strict=True))
    validate(MESSAGE_SCHEMA, row, "value")
    assert row["rawMessage"] == line


@pytest.mark.growth
@pytest.mark.parametrize(
    "line",
    [
        lambda n: "<13>1 2026-11-22T06:31:18Z a b c d [" + "a" * n,
        lambda n: "<13>1 2026-11-22T06:31:18Z a b c d [a" + ' a="b"' * n,
        lambda n: '<13>1 2026-11-22T06:31:18Z a b c d [x a="' + "\\\\" * n,
        lambda n: "<13>1 2026-11-22T06:31:18Z a b c d " + "[a]" * n + "x",
        lambda n: "<13>Nov 22 06:31:18 " + "a:" * n,
        lambda n: "<13>Nov 22 06:31:18 " + " " * n + "x",
        lambda n: "<13>" + " " * n,
        lambda n: "<13>CEF:0|a|b|c|d|e|f|" + "a=b " * n,
        lambda n: "<13>CEF:0|a|b|c|d|e|f|" + "x " * n,
        lambda n: "<13>CEF:0|" + "\\|" * n,
        lambda n: "a" * n + ":",
    ],
)
def test_hostile_lines_take_no_longer_than_their_length(line: Callable[[int], str]) -> None:
    assert_grows_evenly(lambda text: PARSER.parse(text, "10.0.0.1", NOW), line, 100_000)
