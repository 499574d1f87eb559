"""Cutters of JSON values, chunks, and values with a separator: however bytes come, the records are the same."""

from __future__ import annotations

import pytest

from connect.kits.files.readers.records import Cutter, chunk_cutter, json_cutter, separated_cutter
from equipment.growth import assert_grows_evenly


def cut_all(cut: Cutter, data: bytes, size: int) -> list[bytes]:
    """The records of some bytes that come in pieces of this size."""
    found: list[bytes] = []
    rest = b""
    for start in range(0, len(data) or 1, size):
        rest += data[start : start + size]
        final = start + size >= len(data)
        records = cut(rest, final)
        found += [rest[begin:end] for begin, end in zip(records.starts, records.ends, strict=True)]
        rest = rest[records.consumed :]
    assert rest == b""
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b"", []),
        (b' \n{"a": [1, {"b": "}\\""}]} 12 "x\\\\" true', [b'{"a": [1, {"b": "}\\""}]}', b"12", b'"x\\\\"', b"true"]),
        (b'[{"a": 1},\n {"b": 2}, [1, [2]], "s", 3]\n', [b'{"a": 1}', b'{"b": 2}', b"[1, [2]]", b'"s"', b"3"]),
        (b"[] [1] [[2]]", [b"1", b"[2]"]),
        (b'{"a": 1}} {"b": 2}', [b'{"a": 1}', b"}", b'{"b": 2}']),
        (b'{"a": 1', [b'{"a": 1']),
        (b'"open', [b'"open']),
    ],
)
def test_json(data: bytes, records: list[bytes], size: int) -> None:
    assert cut_all(json_cutter(), data, size) == records


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_chunks_and_separators(size: int) -> None:
    assert cut_all(chunk_cutter(3), b"abcdefgh", size) == [b"abc", b"def", b"gh"]
    assert cut_all(chunk_cutter(0), b"abcdefgh", size) == [b"abcdefgh"]
    assert cut_all(chunk_cutter(0), b"", size) == []
    assert cut_all(separated_cutter(b"--"), b"a--\n----b", size) == [b"a--", b"\n--", b"--", b"b"]


@pytest.mark.growth
def test_hostile_json_takes_no_longer() -> None:
    cut = json_cutter()
    for unit in (b'{"a":', b'"', b"[", b"\\", b"}"):
        assert_grows_evenly(lambda data: cut(data, True), lambda count, unit=unit: unit * count, 20_000)
