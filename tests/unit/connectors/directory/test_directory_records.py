from __future__ import annotations

import csv
import io
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.kits.files.readers.records import Records, line_cutter, quoted_cutter

CUT = quoted_cutter(",", '"', 1000)


def raws(records: Records) -> list[bytes]:
    return records.raws()


@pytest.mark.parametrize(
    ("data", "expected", "damaged"),
    [
        (b"a,b\nc,d\n", [b"a,b", b"c,d"], []),
        (b"a,b\r\n\r\n\nc,d", [b"a,b", b"c,d"], []),
        (b'"a\n,""b",c\nd\n', [b'"a\n,""b",c', b"d"], []),
        (b'a"b,c"\nd\n', [b'a"b,c"', b"d"], []),
        (b'"a"b\nc\n', [b'"a"b', b"c"], [0]),
        (b'x,"a\nc,"d"\ne,f\n', [b'x,"a', b'c,"d"', b"e,f"], [0]),
        (b'a\n"open\nb\nc\n', [b"a", b'"open', b"b", b"c"], [1]),
        (b'"",""\n', [b'"",""'], []),
        (b'a\rb,"c"\n', [b'a\rb,"c"'], [0]),
        (b"", [], []),
        (b"\n\n", [], []),
        (b'"\n\n"\n\n"x"', [b'"\n\n"', b'"x"'], []),
    ],
)
def test_records_are_cut_where_quotes_allow(data: bytes, expected: list[bytes], damaged: list[int]) -> None:
    records = CUT(data, True)
    assert raws(records) == expected
    assert sorted(records.damaged) == damaged
    assert records.consumed == len(data)


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"a,b\nc", [b"a,b"]),
        (b'a,"b\nc', []),
        (b'x\na,"b\n', [b"x"]),
        (b'x\n"a"', [b"x"]),
        (b'x\n"a"\r', [b"x"]),
        (b'"a"b', []),
        (b'"a"b\n', [b'"a"b']),
    ],
)
def test_what_may_go_on_is_left(data: bytes, whole: list[bytes]) -> None:
    assert raws(CUT(data, False)) == whole


def test_quotes_that_are_not_closed_within_the_limit_cost_one_line() -> None:
    cut = quoted_cutter(",", '"', 20)
    records = cut(b'"open\n' + b"good,row\n" * 10, False)
    assert raws(records) == [b'"open'] + [b"good,row"] * 10
    assert records.damaged == {0}


def test_lines_count_line_ends_inside_of_quotes() -> None:
    records = CUT(b'a\n\n"b\nc"\nd\n', True)
    assert list(records.lines) == [1, 4, 5]
    assert [records.first_line(index) for index in range(3)] == [0, 2, 4]


def test_blank_lines_are_records_of_text() -> None:
    assert raws(line_cutter(keep_blank=True)(b"a\n\nb\r\n\n", True)) == [b"a", b"", b"b", b""]
    assert raws(line_cutter(keep_blank=True)(b"a\n\nb", False)) == [b"a", b""]


@settings(deadline=None)
@given(
    data=st.lists(st.sampled_from([b"a", b",", b'"', b'""', b"\n", b"\r\n", b"\r"]), max_size=25).map(b"".join),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)
def test_records_are_the_same_however_the_bytes_come(data: bytes, cuts: list[int]) -> None:
    whole = CUT(data, True)
    got: list[bytes] = []
    damaged: set[int] = set()
    rest = b""
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, stop in pairwise(edges):
        rest += data[start:stop]
        records = CUT(rest, stop == len(data))
        damaged |= {len(got) + index for index in records.damaged}
        got += raws(records)
        rest = rest[records.consumed :]
    assert got == raws(whole)
    # A lone \r is found by whoever reads the values where no quotes are looked for.
    assert {index for index in damaged ^ whole.damaged if b"\r" not in got[index]} == set()


@settings(deadline=None)
@given(st.lists(st.lists(st.text('ab,"\r\n ', max_size=5), min_size=2, max_size=3), max_size=6))
def test_what_the_csv_module_writes_is_cut_into_its_rows(rows: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    records = CUT(out.getvalue().encode(), True)
    assert not records.damaged
    assert [next(csv.reader([raw.decode()], strict=True)) for raw in raws(records)] == rows
