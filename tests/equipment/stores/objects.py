"""The contract of a store of objects, as tests that every kind of store has to pass."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.kits.objects.store import ObjectStore

__all__ = ["ObjectContract", "RemovalContract", "unique_prefix"]

RACERS = 12


class RemovalContract:
    """Of what is removed. Subclasses define the fixture ``store``, empty for each test."""

    def test_a_removed_file_is_gone_and_others_are_not(self, store: ObjectStore) -> None:
        for path in ("f/a", "f/b", "f/c/d", "fc/d"):
            store.create(path, b"-")
        store.remove("f/a")
        assert store.names("f") == ["b", "c"]
        store.remove_tree("f/c")
        assert store.names("f") == ["b"]
        assert store.read("fc/d") == b"-"
        store.create("f/a", b"again")
        assert store.read("f/a") == b"again"


class ObjectContract(RemovalContract):
    """Subclasses define the fixture ``store``, empty for each test."""

    page: ClassVar[int] = 1000
    """How many names the server lists at once."""
    has_colons: ClassVar[bool] = True
    """Whether names may have colons."""

    def test_what_is_created_is_there(self, store: ObjectStore) -> None:
        assert store.size("a/b.json") is None
        store.create("a/b.json", b"whole")
        assert (store.read("a/b.json"), store.size("a/b.json")) == (b"whole", 5)
        assert store.names("a") == ["b.json"]
        store.create("a/empty", b"")
        assert (store.read("a/empty"), store.size("a/empty")) == (b"", 0)

    def test_a_file_is_created_once(self, store: ObjectStore) -> None:
        store.create("a", b"first")
        with pytest.raises(FileExistsError):
            store.create("a", b"second")
        assert store.read("a") == b"first"

    def test_of_many_that_create_a_file_one_succeeds(self, store: ObjectStore) -> None:
        together = threading.Barrier(RACERS)

        def create(number: int) -> bytes | None:
            data = b"%d" % number * 1000
            together.wait()
            try:
                store.create("manifests/0000000001.json", data)
            except FileExistsError:
                # The loser finds the complete file of the winner.
                assert len(set(store.read("manifests/0000000001.json").decode())) <= 2
                return None
            return data

        with ThreadPoolExecutor(RACERS) as threads:
            won = [data for data in threads.map(create, range(RACERS)) if data is not None]
        assert won == [store.read("manifests/0000000001.json")]
        assert store.names("manifests") == ["0000000001.json"]

    def test_what_is_not_there_is_told_so(self, store: ObjectStore) -> None:
        assert store.size("none") is None
        assert store.names("none") == []
        assert list(store.below("none")) == []
        for method in (store.read, store.open):
            with pytest.raises(FileNotFoundError):
                method("none")
        store.remove("none")
        store.remove_tree("none")

    def test_names_are_those_directly_in_a_folder(self, store: ObjectStore) -> None:
        for path in ("f/b", "f/a/x", "f/a/y/z", "fa/c"):
            store.create(path, b"-")
        assert store.names("f") == ["a", "b"]
        assert store.names("f/a") == ["x", "y"]

    def test_what_is_below_a_folder_is_listed_in_order(self, store: ObjectStore) -> None:
        for path in ("f/b", "f/a/x", "f/a-/y", "f/a/.z", "f/_c/d", "fa/c", "e"):
            store.create(path, path.encode())
        inside = [("f/_c/d", 6), ("f/a-/y", 6), ("f/a/.z", 6), ("f/a/x", 5), ("f/b", 3)]
        assert list(store.below("f")) == inside
        assert list(store.below("")) == [("e", 1), *inside, ("fa/c", 4)]

    def test_names_that_do_not_fit_on_a_page_are_all_listed(self, store: ObjectStore) -> None:
        many = range(self.page * 11 // 10)
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda number: store.create(f"many/{number:05}", b""), many))
        assert store.names("many") == [f"{number:05}" for number in many]
        store.remove_tree("many")
        assert store.names("many") == []

    def test_pyarrow_reads_a_file(self, store: ObjectStore) -> None:
        table = pa.table({"id": list(range(10_000)), "text": [f"{number:0100}" for number in range(10_000)]})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="none")
        store.create("t.parquet", buffer.getvalue())
        with store.open("t.parquet") as content:
            assert pq.read_metadata(content).num_rows == 10_000
        with store.open("t.parquet") as content:
            assert pq.read_table(content).equals(table)

    @pytest.mark.parametrize("name", ["a b", "a%20b", "a+b", "ü", "k=v", "a:b"])
    def test_names_mean_themselves(self, store: ObjectStore, name: str) -> None:
        if ":" in name and not self.has_colons:
            pytest.skip("it has no such names")
        store.create(f"{name}/{name}", b"-")
        assert store.names("") == [name]
        assert store.names(name) == [name]
        assert store.read(f"{name}/{name}") == b"-"


def unique_prefix() -> str:
    """The name of a folder that no other test uses."""
    return f"test-{uuid4().hex[:12]}"
