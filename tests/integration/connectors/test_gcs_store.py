"""A bucket of Google Cloud Storage is a store, and Spark and its executors write there: with fake-gcs-server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from connect.data import TopicPartition
from connect.kits.objects.gcs import GoogleObjects
from connectors.spark.options.store import StoreOptions
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.google_parts import GooglePlace
from connectors.spark.stores.store import Store
from equipment.servers.gcs import GcsServer
from equipment.stores.contract import TABLE, StoreContract
from equipment.stores.objects import unique_prefix


def config_of(server: GcsServer, url: str, **more: str) -> StoreOptions:
    return StoreOptions.parse({"store.url": url, **server.props, **more})


@pytest.fixture
def url(gcs: GcsServer) -> str:
    return f"gs://{gcs.bucket}/{unique_prefix()}/lake"


@pytest.fixture
def bucket(gcs: GcsServer, url: str) -> GoogleObjects:
    """What is below the store, in plain requests."""
    config = config_of(gcs, url)
    return GoogleObjects(config.google_account, gcs.bucket, config.location.path)


@pytest.mark.thorough
class TestGcsStore(StoreContract):
    @pytest.fixture
    def store(self, gcs: GcsServer, url: str) -> Iterator[Store]:
        yield open_store(config_of(gcs, url), _no_spark)

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        """As Spark does."""
        store.create(f"{folder}/{name}", data)

    def test_a_bucket_itself_is_a_store(self, gcs: GcsServer) -> None:
        store = open_store(config_of(gcs, f"gs://{gcs.make_bucket()}"), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]
        assert store.names("") == ["_sluice", "topics"]

    def test_what_hadoop_marks_folders_with_is_no_file_and_goes_with_them(
        self, store: Store, bucket: GoogleObjects
    ) -> None:
        for path in ("f/", "f/a/", "f/a/x"):
            store.create(path, b"")
        assert (list(store.files("f")), [file.path for file in store.staged("f")]) == (["a/x"], ["a/x"])
        store.remove_tree("f")
        assert list(bucket.below("f")) == []

    def test_executors_stage_what_counts_at_its_end(self, store: Store, bucket: GoogleObjects) -> None:
        """A file of several chunks, two attempts of which the first stays, and one that is given up while it writes."""
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        place = store.part_place(folder, TABLE, {})
        assert isinstance(place, GooglePlace)
        large = bytes(range(256)) * 4096 * 17
        for attempt, data in ((1, large), (2, large)):
            written = place.begin(0, attempt)
            stream = written.open("x")
            for start in range(0, len(data), 1 << 20):
                stream.write(data[start : start + (1 << 20)])
            stream.close()
            assert [file.path for file in store.staged(folder)] == (["x"] if attempt > 1 else [])
            written.finish()
            written.discard()
        for size in (1, len(large)):
            given_up = place.begin(1, size)
            stream = given_up.open("y")
            stream.write(large[:size])
            given_up.discard()
            stream.close()
        assert [name for name, _ in bucket.below(staging)] == [f"{folder}/x"]
        files = {"x": next(iter(store.staged(folder)))}
        ledger.commit(staging, self.moves(staging, files), {TopicPartition("t", 0): 1}, {})
        assert store.read(f"{TABLE}/x") == large
        assert list(bucket.below(staging)) == []


def _no_spark() -> Any:
    raise AssertionError("an object store needs no Spark")
