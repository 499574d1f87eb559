from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.errors import ConnectError, DataError
from worker.stores.offset.file import FileOffsetStore, read_map, write_map
from worker.stores.offset.store import offset_key, offset_value, parse_offset, parse_offset_key

# Written by Apache Kafka Connect's standalone mode.
JAVA = bytes.fromhex(
    "aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f724900097468"
    "726573686f6c6478703f4000000000000c77080000001000000001757200025b42acf317f8060854e002000078700000001a5b227361"
    "2d7473222c7b2266696c656e616d65223a2278227d5d7571007e00020000000e7b22706f736974696f6e223a387d78"
)


def test_a_file_of_java_is_read_and_written_byte_for_byte() -> None:
    values = read_map(JAVA)
    assert values == {b'["sa-ts",{"filename":"x"}]': b'{"position":8}'}
    assert write_map(values) == JAVA


@given(st.dictionaries(st.binary(max_size=40), st.binary(max_size=40), max_size=40))
def test_any_map_survives(values: dict[bytes, bytes]) -> None:
    assert read_map(write_map(values)) == values


@given(st.binary(max_size=200))
def test_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"expected|ends before"):
        read_map(data)


@given(st.integers(0, len(JAVA) - 1))
def test_a_cut_off_file_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=r"expected|ends before"):
        read_map(JAVA[:length])


def test_offsets_survive_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "offsets"
    key = offset_key("c", {"filename": "x"})
    with closing(FileOffsetStore(file)) as store:
        store.put({key: offset_value({"position": 7})})
    with closing(FileOffsetStore(file)) as store:
        assert [parse_offset(data) for data in store.get([key, b"other"])] == [{"position": 7}, None]
        assert [parse_offset_key(item) for item in store.items()] == [("c", {"filename": "x"})]
        store.put({key: None})
    with closing(FileOffsetStore(file)) as store:
        assert store.items() == {}


def test_a_half_written_file_is_never_seen(tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    key = offset_key("c", {"a": 1})
    with closing(FileOffsetStore(file)) as store:
        store.put({key: b"1"})
    # A kill while the next version is written leaves it beside the file.
    (tmp_path / ".offsets.new").write_bytes(JAVA[:20])
    with closing(FileOffsetStore(file)) as store:
        assert store.get([key]) == [b"1"]
        store.put({key: b"2"})
    with closing(FileOffsetStore(file)) as store:
        assert store.get([key]) == [b"2"]


def test_another_file_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_text("not offsets")
    with pytest.raises(ConnectError, match=r"offset\.storage\.file\.filename=.*not an offsets file"):
        FileOffsetStore(file)
    assert file.read_text() == "not offsets"


def test_offsets_hold_only_what_json_can_say() -> None:
    with pytest.raises(DataError, match="Offsets may only contain primitive types"):
        offset_value({"when": object()})


def test_a_second_worker_does_not_get_the_file(tmp_path: Path) -> None:
    """It knows only what was there when it started, and would write that over what the first commits later."""
    file = tmp_path / "offsets"
    with closing(FileOffsetStore(file)) as first:
        with pytest.raises(ConnectError, match=f"offset.storage.file.filename={file} is in use: .*Stop that worker"):
            FileOffsetStore(file)
        first.put({b"key": b"1"})
    with closing(FileOffsetStore(file)) as second:
        assert second.items() == {b"key": b"1"}


def test_a_place_that_cannot_be_locked_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Sinks need no offsets file: their worker starts all the same."""
    (tmp_path / ".offsets.lock").mkdir()
    with closing(FileOffsetStore(tmp_path / "offsets")) as store:
        store.put({b"key": b"1"})
        assert store.items() == {b"key": b"1"}
    assert "make sure that no other worker uses it" in caplog.text


def test_a_file_that_cannot_be_written_is_named_and_written_later(tmp_path: Path) -> None:
    """As on a full disk, or in a folder of another user: here something stands in the way."""
    file, key = tmp_path / "offsets", offset_key("c", {})
    with closing(FileOffsetStore(file)) as store:
        (tmp_path / ".offsets.new").mkdir()
        with pytest.raises(ConnectError) as told:
            store.put({key: offset_value({"position": 1})})
        assert str(told.value).startswith(f"offset.storage.file.filename={file} cannot be written ([Errno 21] ")
        assert "Free space, or let the worker's user write it and its folder." in str(told.value)
        assert store.get([key]) == [None]
        (tmp_path / ".offsets.new").rmdir()
        store.put({key: offset_value({"position": 2})})
    with closing(FileOffsetStore(file)) as store:
        assert store.get([key]) == [offset_value({"position": 2})]
