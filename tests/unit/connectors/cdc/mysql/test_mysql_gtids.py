"""Sets of GTIDs of MySQL and MariaDB."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.cdc.mysql.gtids import MariaDbGtidSet, MySqlGtidSet

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
NUMBERS = st.sets(st.integers(1, 40))


def gtids(numbers: set[int]) -> MySqlGtidSet:
    return MySqlGtidSet.parse(",".join(f"{A}:{number}" for number in numbers))


def test_a_set_is_written_as_mysql_writes_it() -> None:
    text = f"{B}:3,\n{A.upper()}:7:1-3:4-5:tag:2,{A}:9-10"

    assert str(MySqlGtidSet.parse(text)) == f"{A}:1-5:7:9-10:tag:2,{B}:3"
    assert str(MySqlGtidSet.parse("")) == ""


@given(NUMBERS, NUMBERS)
def test_sets_of_mysql_are_sets(first: set[int], second: set[int]) -> None:
    one, other = gtids(first), gtids(second)

    assert one.union(other) == gtids(first | second)
    assert one.minus(other) == gtids(first - second)
    assert one.contains(other) == (second <= first)
    assert bool(one) == bool(first)
    assert all((f"{A}:{number}" in one) == (number in first) for number in range(1, 42))


@given(NUMBERS, st.integers(1, 42))
def test_one_transaction_more_is_added_in_its_place(numbers: set[int], more: int) -> None:
    assert gtids(numbers).with_gtid(f"{A}:{more}") == gtids(numbers | {more})


def test_a_tag_makes_another_source() -> None:
    tagged = MySqlGtidSet.parse(f"{A}:tag:1-3")

    assert f"{A}:tag:2" in tagged
    assert f"{A}:2" not in tagged
    assert tagged.with_gtid(f"{A}:tag:4") == MySqlGtidSet.parse(f"{A}:tag:1-4")
    assert tagged.uuids == {A}


def test_a_set_is_encoded_as_the_protocol_has_it() -> None:
    plain = MySqlGtidSet.parse(f"{A}:1-5:7").encode()

    assert plain[:8] == (1).to_bytes(8, "little")
    assert plain[8:24].hex() == A.replace("-", "")
    assert [int.from_bytes(plain[at : at + 8], "little") for at in range(24, len(plain), 8)] == [2, 1, 6, 7, 8]
    tagged = MySqlGtidSet.parse(f"{A}:tag:1").encode()
    assert (tagged[0], tagged[1], tagged[7]) == (1, 1, 1)
    assert tagged[24:28] == b"\x06tag"


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:0", f"{A}:5-3", f"{A}:-1", f"{A}:1:Ta g:2", "0-1-1", f"{A}:1-"])
def test_what_is_no_set_of_mysql_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no|neither"):
        MySqlGtidSet.parse(text)


def test_a_position_of_mariadb_has_the_last_transaction_of_each_domain() -> None:
    position = MariaDbGtidSet.parse("5-2-7, 0-1-10,0-1-9")

    assert str(position) == "0-1-10,5-2-7"
    assert str(position.with_gtid("0-3-11")) == "0-3-11,5-2-7"
    assert "0-9-10" in position
    assert "0-1-11" not in position
    assert "7-1-1" not in position
    assert position.contains(MariaDbGtidSet.parse("0-1-3"))
    assert not position.contains(MariaDbGtidSet.parse("0-1-3,6-1-1"))
    assert not MariaDbGtidSet.parse("")


@pytest.mark.parametrize("text", ["0-1", "a-1-1", f"{A}:1", "0-1-1-1"])
def test_what_is_no_position_of_mariadb_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no GTID of MariaDB"):
        MariaDbGtidSet.parse(text)
