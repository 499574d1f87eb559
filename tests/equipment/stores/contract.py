"""The contract of a store of tables, as tests that every kind of store has to pass."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from connect.data import Schema, TopicPartition
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.ledger.manifest import LedgerError, Move
from connectors.spark.sink.target import FencedError
from connectors.spark.stores.store import StagedFile, Store
from equipment.stores.objects import RemovalContract

__all__ = ["StoreContract"]

TABLE = "topics/t"
TP = TopicPartition("t", 0)


def unchecked() -> None:
    """A fencing check that always passes."""


class StoreContract(RemovalContract):
    """Subclasses define the fixture ``store``, empty for each test, and how a file is staged in it."""

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        """Leave a file of a table in a folder as a successful attempt at a Spark task does."""
        raise NotImplementedError

    def test_files_are_those_that_a_reader_sees(self, store: Store) -> None:
        for path in ("t/b", "t/a/x", "t/_SUCCESS", "t/.b.crc", "t/_temporary/0/c", "ta/c"):
            store.create(path, b"-")
        assert list(store.files("t")) in (["a/x", "b"], ["b", "a/x"])

    # -- loads -----------------------------------------------------------------------------------------------

    def staged(self, store: Store, ledger: Ledger, *names: str) -> tuple[str, dict[str, StagedFile]]:
        """Stage the files of a load; return the folder, and the store's description of each file by name."""
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        store.begin(folder, TABLE)
        for name in names:
            self.stage(store, folder, name, f"content of {name}".encode())
        return staging, {(file.target or file.path).rpartition("/")[2]: file for file in store.staged(folder)}

    def moves(self, staging: str, files: dict[str, StagedFile]) -> list[Move]:
        """The destinations of the files of a load."""
        return [
            Move(f"{staging}/t-1/t/{file.path}", file.target or f"{TABLE}/{name}", file.size, 1, file.upload)
            for name, file in files.items()
        ]

    def opened(self, store: Store) -> Ledger:
        """A ledger in the store, which this process has taken over."""
        ledger = Ledger(store, "sink")
        ledger.open()
        return ledger

    def test_staged_files_are_seen_when_they_are_published(self, store: Store) -> None:
        staging, files = self.staged(store, self.opened(store), "x", "y")
        assert {name: file.size for name, file in files.items()} == {"x": 12, "y": 12}
        assert list(store.files("topics")) == []
        for move in self.moves(staging, files):
            for _ in range(2):
                store.publish(move.source, move.target, move.upload)
            assert store.size(move.target) == move.size
        store.sync_folders([TABLE])
        assert list(store.files(TABLE)) == ["x", "y"]
        assert store.read(f"{TABLE}/y") == b"content of y"
        store.remove_tree(staging)
        assert list(store.files(TABLE)) == ["x", "y"]

    def test_what_is_lost_before_it_is_published_is_told(self, store: Store) -> None:
        staging, files = self.staged(store, self.opened(store), "x")
        store.abandon(staging, unchecked)
        (move,) = self.moves(staging, files)
        with pytest.raises(FileNotFoundError):
            store.publish(move.source, move.target, move.upload)

    def test_two_that_publish_the_same_files_do_so_once(self, store: Store) -> None:
        staging, files = self.staged(store, self.opened(store), *(f"{number:02}" for number in range(20)))
        moves = self.moves(staging, files)

        def publish_all(_: int) -> None:
            for move in moves:
                store.publish(move.source, move.target, move.upload)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(publish_all, range(2)))
        assert list(store.files(TABLE)) == [f"{number:02}" for number in range(20)]

    def test_what_is_abandoned_is_gone(self, store: Store) -> None:
        staging, _ = self.staged(store, self.opened(store), "x", "y")
        store.abandon(staging, unchecked)
        assert list(store.staged(f"{staging}/t-1/t")) == []
        assert store.names(staging.rpartition("/")[0]) == []

    # -- the ledger on it --------------------------------------------------------------------------------------

    def commit(self, store: Store, ledger: Ledger, end: int) -> None:
        """Commit a load of one file."""
        try:
            staging, files = self.staged(store, ledger, f"t+{end}")
        except OSError:
            # As in a load: a driver that takes over deletes what this one is about to stage.
            ledger.check_fence()
            raise
        ledger.commit(staging, self.moves(staging, files), {TP: end}, {"t": Schema.struct({})})

    def test_loads_follow_each_other_across_restarts(self, store: Store) -> None:
        for end in (1, 2, 3):
            ledger = self.opened(store)
            assert ledger.offsets.get(TP, 0) == end - 1
            self.commit(store, ledger, end)
            assert list(store.files(TABLE)) == [f"t+{number}" for number in range(1, end + 1)]

    def test_a_driver_that_was_overtaken_commits_nothing(self, store: Store) -> None:
        first = self.opened(store)
        staging, files = self.staged(store, first, "lost")
        second = self.opened(store)
        self.commit(store, second, 1)
        with pytest.raises(FencedError):
            first.commit(staging, self.moves(staging, files), {TP: 7}, {})
        with pytest.raises(FencedError):
            first.recover()
        assert list(store.files(TABLE)) == ["t+1"]
        assert self.opened(store).offsets == {TP: 1}

    def test_of_many_drivers_that_open_at_once_one_remains(self, store: Store) -> None:
        together = threading.Barrier(4)

        def drive(number: int) -> Any:
            ledger = Ledger(store, "sink")
            together.wait()
            try:
                ledger.open()
                self.commit(store, ledger, number + 1)
            except (FencedError, LedgerError) as error:
                return error
            return None

        with ThreadPoolExecutor(4) as threads:
            errors = list(threads.map(drive, range(4)))
        assert all(isinstance(error, FencedError) for error in errors if error is not None)
        committed = [f"t+{number + 1}" for number, error in enumerate(errors) if error is None]
        # A driver that was overtaken after its commit has committed, and its successor knows of it.
        assert committed
        assert list(store.files(TABLE)) == committed
        assert self.opened(store).offsets[TP] in {int(name.removeprefix("t+")) for name in committed}
