"""A container of Azure is a store, and Spark and its executors write there: with Azurite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from connect.data import TopicPartition
from connect.kits.objects.azure import AzureBlobs
from connectors.spark.options.store import StoreOptions
from connectors.spark.stores.azure import AzureStore
from connectors.spark.stores.azure_parts import AzurePlace
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.store import Store
from equipment.servers.azurite import AzureServer
from equipment.stores.contract import TABLE, StoreContract
from equipment.stores.objects import unique_prefix

TP = TopicPartition("t", 0)


def config_of(server: AzureServer, url: str, **more: str) -> StoreOptions:
    return StoreOptions.parse({"store.url": url, **server.props, **more})


@pytest.fixture
def url(azure: AzureServer) -> str:
    return azure.url(f"{unique_prefix()}/lake")


@pytest.fixture
def blobs(azure: AzureServer, url: str) -> AzureBlobs:
    """What is below the store, in plain requests."""
    config = config_of(azure, url)
    return AzureBlobs(config.azure_account, azure.container, config.location.path)


def attempt_at(store: Store, folder: str, split: int, attempt: int, name: str, data: bytes) -> Any:
    """Write a file as the Python of an executor does, and do not end the attempt."""
    place = store.part_place(folder, TABLE, {})
    assert isinstance(place, AzurePlace)
    written = place.begin(split, attempt)
    stream = written.open(name)
    for start in range(0, len(data), 1 << 20):
        stream.write(data[start : start + (1 << 20)])
    stream.close()
    return written


@pytest.mark.thorough
class TestAzureStore(StoreContract):
    @pytest.fixture
    def store(self, azure: AzureServer, url: str) -> Iterator[Store]:
        yield open_store(config_of(azure, url), _no_spark)

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        """As the Python of executors does, with a split for each name."""
        attempt_at(store, folder, int.from_bytes(name.encode()[-3:]), attempt, name, data).finish()

    def test_what_is_lost_before_it_is_published_is_told(self, store: Store) -> None:
        """Nobody can give blocks up, so this asks for some that the service has never had."""
        staging, files = self.staged(store, self.opened(store), "x")
        (move,) = self.moves(staging, files)
        assert move.upload is not None
        with pytest.raises(FileNotFoundError):
            store.publish(move.source, move.target, replace(move.upload, id="0" * 32))

    def test_a_container_itself_is_a_store(self, azure: AzureServer) -> None:
        store = open_store(config_of(azure, azure.url("", azure.make_container())), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]
        assert store.names("") == ["_sluice", "topics"]

    def test_what_stands_for_folders_is_no_file_and_goes_with_them(
        self, store: Store, azure: AzureServer, url: str
    ) -> None:
        prefix = StoreOptions.parse({"store.url": url}).location.path
        for folder in ("f", "f/a", "f/a/b"):
            azure.client().upload_blob(f"{prefix}/{folder}", b"", metadata={"hdi_isfolder": "true"})
        store.create("f/a/x", b"-")
        assert (list(store.files("f")), store.size("f/a"), store.names("f/a")) == (["a/x"], None, ["b", "x"])
        store.remove_tree("f")
        assert list(azure.client().list_blobs(name_starts_with=f"{prefix}/f")) == []

    def test_executors_stage_what_counts_at_its_end(self, store: Store, blobs: AzureBlobs) -> None:
        """A file of several blocks; two attempts, of which the last counts; one that is given up while it writes."""
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        large = bytes(range(256)) * 4096 * 17
        for attempt in (1, 2):
            written = attempt_at(store, folder, 0, attempt, "x", large)
            assert [file.size for file in store.staged(folder)] == [len(large)] * (attempt - 1)
            written.finish()
            written.discard()
        given_up = attempt_at(store, folder, 1, 1, "y", large)
        given_up.discard()
        (file,) = store.staged(folder)
        assert list(blobs.below("topics")) == []
        ledger.commit(staging, self.moves(staging, {"x": file}), {TP: 1}, {})
        assert store.read(f"{TABLE}/x") == large
        # A task that outlives its load changes nothing.
        attempt_at(store, folder, 0, 3, "x", b"late").finish()
        assert store.read(f"{TABLE}/x") == large
        assert [path for path, _ in blobs.below("topics")] == [f"{TABLE}/x"]

    def test_what_java_has_written_is_staged_as_blocks(self, store: Store, blobs: AzureBlobs) -> None:
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        store.writer_options(folder, TABLE, {3: "partition=9"})
        contents = {
            "part-00003-mark.c000.orc": b"nine" * 1000,
            "k=v/part-00000-mark.c000.orc": b"zero",
            "_SUCCESS": b"",
        }
        for name, data in contents.items():
            store.create(f"{folder}/{name}", data)
        files = {(file.target or "").removeprefix(f"{TABLE}/"): file for file in store.staged(folder)}
        assert set(files) == {"partition=9/part-00003-mark.c000.orc", "k=v/part-00000-mark.c000.orc"}
        assert list(store.files("topics")) == []
        ledger.commit(staging, self.moves(staging, files), {TP: 1}, {})
        assert sorted(store.read(path) for path, _ in blobs.below("topics")) == [b"nine" * 1000, b"zero"]

    def test_a_file_of_somebody_else_is_not_replaced(self, store: Store) -> None:
        staging, files = self.staged(store, self.opened(store), "x")
        (move,) = self.moves(staging, files)
        _replace(store, move.target, b"theirs")
        with pytest.raises(FileExistsError):
            store.publish(move.source, move.target, move.upload)
        assert store.read(move.target) == b"theirs"

    @pytest.mark.parametrize("credential", ["token", "connection string"])
    def test_tokens_and_connection_strings_open_it_too(self, azure: AzureServer, url: str, credential: str) -> None:
        keys = {"azblob.endpoint": azure.endpoint, "azblob.sas.token": f"?{azure.token()}"}
        if credential == "connection string":
            keys = {"azblob.connection.string": azure.connection_string}
        store = open_store(StoreOptions.parse({"store.url": url, **keys}), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]


def _replace(store: Store, path: str, data: bytes) -> None:
    """Put a blob as somebody does who does not look whether there is one."""
    assert isinstance(store, AzureStore)
    store._blob(path).upload_blob(data, overwrite=True)


def _no_spark() -> Any:
    raise AssertionError("an object store needs no Spark")
