"""What is not an assignment or a member's metadata is said to be malformed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.config import connector_name
from connect.errors import ConfigError, DataError
from worker.membership.protocol import (
    Assignment,
    MemberMetadata,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from worker.unit import Unit

UNITS = st.frozensets(st.builds(Unit, st.text(max_size=5), st.integers(-1, 1000)), max_size=6)
OFFSETS = st.integers(-1, 2**63 - 1)
ASSIGNMENTS = st.builds(
    Assignment, st.text(max_size=9), st.text(max_size=9), OFFSETS, UNITS, UNITS, st.integers(0, 2**31 - 1)
)


@given(st.text(), OFFSETS, st.none() | ASSIGNMENTS, st.booleans(), st.sampled_from([1, 2]))
def test_what_is_written_is_read(url: str, offset: int, held: Assignment | None, draining: bool, version: int) -> None:
    metadata = MemberMetadata(url, offset, held, draining)
    assert decode_metadata(encode_metadata(metadata, version)) == metadata


@settings(deadline=None)
@given(ASSIGNMENTS)
def test_any_part_of_it_is_malformed(assignment: Assignment) -> None:
    data = encode_assignment(assignment, 2)
    for end in range(len(data)):
        with pytest.raises(DataError, match="malformed"):
            decode_assignment(data[:end])
    with pytest.raises(DataError, match="1 bytes are left over"):
        decode_assignment(data + b"\0")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_metadata, decode_assignment):
        try:
            decode(data)
        except DataError as error:
            assert "malformed" in str(error)


def test_what_follows_metadata_is_the_mark_of_a_drained_worker_or_malformed() -> None:
    data = encode_metadata(MemberMetadata("url", 1), 2)
    assert encode_metadata(MemberMetadata("url", 1, draining=True), 2) == data + b"\1"
    for more in (b"\0", b"\1\1"):
        with pytest.raises(DataError, match="are left over"):
            decode_metadata(data + more)
    assert not decode_metadata(encode_metadata(MemberMetadata("url", 1, draining=True), 0)).draining


def test_a_text_that_is_not_utf_8() -> None:
    data = encode_metadata(MemberMetadata("url", 1), 1).replace(b"url", b"\xff\xfe\xfd")
    with pytest.raises(DataError, match="not UTF-8"):
        decode_metadata(data)


def test_the_longest_name_of_a_connector_is_one_that_members_can_tell_each_other() -> None:
    longest = "ü" * 16_383 + "x"
    connector_name("name", longest)
    assignment = Assignment("m", "http://h:1/", 1, frozenset({Unit(longest)}))
    assert decode_assignment(encode_assignment(assignment, 2)) == assignment
    with pytest.raises(ConfigError, match="It has 32768 bytes; at most 32767 are allowed"):
        connector_name("name", f"{longest}x")
