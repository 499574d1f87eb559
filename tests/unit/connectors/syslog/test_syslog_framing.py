"""Messages in streams: lines, counted ones and RELP's, torn anywhere, too long, and never ending."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.syslog.framing import Framer
from connectors.syslog.relp import RelpError, RelpSession, acknowledgement
from equipment.growth import assert_grows_evenly

MOST = 1000


def fed(*parts: bytes, most: int = MOST) -> tuple[list[bytes], list[bytes]]:
    """The messages of a stream that ends, and those that were cut."""
    framer = Framer(most)
    messages: list[bytes] = []
    cut: list[bytes] = []
    for frames in (*(framer.feed(part) for part in parts), framer.finish()):
        messages += frames.messages
        cut += [frames.messages[place] for place in sorted(frames.cut)]
    return messages, cut


def bytewise(data: bytes) -> list[bytes]:
    return [data[place : place + 1] for place in range(len(data))]


STREAMS = [
    (b"<13>a\n<13>b\r\n\n<13>c\0\n<13>d", [b"<13>a", b"<13>b", b"<13>c", b"<13>d"]),
    (b"5 <13>a6 <13>bc\n7 <13>\nde9 <13>\n5 <1", [b"<13>a", b"<13>bc", b"<13>\nde", b"<13>\n5 <1"]),
    (b"5 <13>a\n<13>b\n5 <13>c", [b"<13>a", b"<13>b", b"<13>c"]),
    (b"2024 was a year\n12:30 x\n99 bottles\n1234567890 <13>x\n", None),
]


@pytest.mark.parametrize(("stream", "messages"), STREAMS)
def test_lines_and_counted_messages_are_told_apart(stream: bytes, messages: list[bytes] | None) -> None:
    expected = messages if messages is not None else stream.splitlines()
    assert fed(stream) == (expected, [])
    assert fed(*bytewise(stream)) == (expected, [])


def test_a_counted_message_without_its_end_is_cut() -> None:
    assert fed(b"5 <13>a100 <13>bc") == ([b"<13>a", b"<13>bc"], [b"<13>bc"])


@pytest.mark.parametrize("split", [True, False])
def test_what_a_message_has_beyond_the_limit_is_skipped(split: bool) -> None:
    long = b"<13>" + b"x" * 2 * MOST
    stream = long + b"\n%d %b<13>next\n" % (len(long), long)
    found = fed(*bytewise(stream)) if split else fed(stream)
    assert found == ([long[:MOST], long[:MOST], b"<13>next"], [long[:MOST]] * 2)


def test_a_line_of_the_longest_length_is_whole() -> None:
    whole = b"x" * MOST
    assert fed(whole + b"\n" + whole) == ([whole, whole], [])
    assert fed(*bytewise(whole + b"\n")) == ([whole], [])


@given(
    st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=30)), max_size=8),
    st.lists(st.integers(0, 300), max_size=8),
)
def test_a_stream_may_be_torn_anywhere(messages: list[tuple[bool, bytes]], tears: list[int]) -> None:
    texts = [
        (counted, b"<1>" + (text if counted else text.replace(b"\n", b" ")).rstrip(b"\r\n\0"))
        for counted, text in messages
    ]
    stream = b"".join(b"%d %b" % (len(text), text) if counted else text + b"\n" for counted, text in texts)
    places = sorted({0, len(stream), *(tear for tear in tears if tear < len(stream))})
    parts = [stream[start:end] for start, end in pairwise(places)]
    assert fed(*parts) == ([text for _, text in texts], [])


@pytest.mark.growth
@pytest.mark.parametrize("part", [b"x", b"1", b"\n", b"1 <", b"<13>a\n", b"9 <13>"])
def test_a_stream_costs_what_its_length_does(part: bytes) -> None:
    def run(parts: list[bytes]) -> None:
        framer = Framer(1 << 20)
        for each in parts:
            framer.feed(each)

    assert_grows_evenly(run, lambda size: [part] * size, 50_000)


def relp(*parts: bytes, most: int = MOST) -> tuple[list[bytes], list[int], bytes, bool]:
    session = RelpSession(most)
    messages: list[bytes] = []
    transactions: list[int] = []
    answers = b""
    is_closed = False
    for part in parts:
        frames = session.feed(part)
        messages += frames.messages
        transactions += frames.transactions
        answers += frames.answers
        is_closed = frames.is_closed
    return messages, transactions, answers, is_closed


def test_a_session_of_relp() -> None:
    stream = (
        b"1 open 30 relp_version=0\ncommands=syslog\n2 syslog 5 <13>a\n3 syslog 0\n4 syslog 7 <13>b\n \n5 close 0\n"
    )
    for parts in ([stream], bytewise(stream)):
        messages, transactions, answers, is_closed = relp(*parts)
        assert (messages, transactions, is_closed) == ([b"<13>a", b"<13>b\n "], [2, 4], True)
        assert answers == (
            b"1 rsp 58 200 OK\nrelp_version=0\nrelp_software=sluice\ncommands=syslog\n"
            b"3 rsp 6 200 OK\n5 rsp 6 200 OK\n0 serverclose 0\n"
        )
    assert acknowledgement(2) == b"2 rsp 6 200 OK\n"


def test_a_message_of_relp_beyond_the_limit_is_cut_and_acknowledged() -> None:
    long = b"<13>" + b"x" * 2 * MOST
    stream = b"1 open 0\n2 syslog %d %b\n3 syslog 5 <13>a\n" % (len(long), long)
    for parts in ([stream], bytewise(stream)):
        messages, transactions, _, _ = relp(*parts)
        assert (messages, transactions) == ([long[:MOST], b"<13>a"], [2, 3])


@pytest.mark.parametrize(
    "stream",
    [b"<13>Nov 22 06:31:18 vm app: x\n", b"GET / HTTP/1.1\r\n", b"1 syslog 5 <13>ax", b"9" * 60, b"\x16\x03\x01"],
)
def test_what_is_not_relp_is_refused(stream: bytes) -> None:
    with pytest.raises(RelpError):
        relp(stream)
    with pytest.raises(RelpError):
        relp(*bytewise(stream))


def test_a_message_before_the_session_is_open_is_refused() -> None:
    messages, transactions, answers, _ = relp(b"1 syslog 5 <13>a\n2 eventlog 0\n")
    assert (messages, transactions) == ([], [])
    reason = b"500 open the session with commands=syslog first"
    assert answers == b"1 rsp %d %b\n2 rsp %d %b\n" % (len(reason), reason, len(reason), reason)
