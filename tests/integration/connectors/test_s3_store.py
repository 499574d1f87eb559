"""A bucket is a store: with moto, and with versitygw where that is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from connect.data import TopicPartition
from connect.errors import ConnectError
from connect.kits.objects.s3 import S3Objects
from connectors.spark.options.store import StoreOptions
from connectors.spark.sink.ledger.ledger import Ledger
from connectors.spark.sink.ledger.manifest import LedgerError
from connectors.spark.stores.factory import open_store
from connectors.spark.stores.s3 import S3Store
from connectors.spark.stores.s3_parts import ObjectFolder, UploadPlace
from connectors.spark.stores.store import Store
from equipment.servers.s3 import S3Server
from equipment.stores.contract import TABLE, StoreContract
from equipment.stores.objects import unique_prefix

ATTEMPT = "attempt_202611222242027096542949290684644_0000_m_000000_{}"


def config_of(server: S3Server, url: str, **more: str) -> StoreOptions:
    return StoreOptions.parse({"store.url": url, **server.props, **more})


@pytest.fixture
def url(s3: S3Server) -> str:
    return f"s3://{s3.bucket}/{unique_prefix()}/lake"


@pytest.fixture
def bucket(s3: S3Server, url: str) -> S3Objects:
    """What is below the store, in plain requests."""
    config = config_of(s3, url)
    return S3Objects(config.s3_account, s3.bucket, config.location.path)


class S3Contract(StoreContract):
    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        """As S3A does: an upload, and a file that describes it."""
        assert isinstance(store, S3Store)
        client, key = store._client, store.key(f"{TABLE}/{name}")
        place = {"Bucket": store._bucket, "Key": key}
        upload = client.create_multipart_upload(**place)["UploadId"]
        tag = client.upload_part(**place, UploadId=upload, PartNumber=1, Body=data)["ETag"]
        document = {"uploadId": upload, "destinationKey": key, "etags": [{"etag": tag}], "length": len(data)}
        base = f"{folder}/{ATTEMPT.format(attempt)}"
        store.put(f"{base}/__base/{TABLE}/{name}", b"")
        store.put(f"{base}/__base/{TABLE}/{name}.pending", json.dumps(document).encode())
        store.put(f"{folder}/committed/{ATTEMPT.format(attempt)}.pendingset", b"")


class TestS3Store(S3Contract):
    @pytest.fixture
    def store(self, s3: S3Server, url: str) -> Iterator[Store]:
        yield open_store(config_of(s3, url), _no_spark)

    def test_a_bucket_itself_is_a_store(self, s3: S3Server) -> None:
        store = open_store(config_of(s3, f"s3://{s3.make_bucket()}"), _no_spark)
        self.commit(store, self.opened(store), 1)
        assert list(store.files(TABLE)) == ["t+1"]
        assert store.names("") == ["_sluice", "topics"]

    def test_only_the_attempt_that_counts_is_staged(self, store: Store) -> None:
        folder = f"{self.opened(store).new_staging()}/t-1/t"
        store.begin(folder, TABLE)
        self.stage(store, folder, "first", b"1", attempt=3)
        self.stage(store, folder, "last", b"2", attempt=12)
        assert [file.target for file in store.staged(folder)] == [f"{TABLE}/last"]

    def test_executors_stage_as_spark_does(self, store: Store, bucket: S3Objects) -> None:
        """A file of two parts in a folder of its own, and one that another attempt at its split replaces."""
        ledger = self.opened(store)
        staging = ledger.new_staging()
        folder = f"{staging}/t-1/t"
        store.begin(folder, TABLE)
        place = replace(upload_place(store, folder), folders={0: "partition=7"})
        large = bytes(range(256)) * 4096 * 6
        for split, attempt, data in ((0, 1, large), (1, 2, b"lost"), (1, 10, b"kept"), (2, 3, b"")):
            written = place.begin(split, attempt)
            for name in [f"{split}-{attempt}"] if data else []:
                stream = written.open(name)
                for start in range(0, len(data), 1 << 20):
                    stream.write(data[start : start + (1 << 20)])
                stream.close()
            written.finish()
            written.discard()
        staged = list(store.staged(folder))
        assert [(file.target, file.size) for file in staged] == [
            (f"{TABLE}/partition=7/0-1", len(large)),
            (f"{TABLE}/1-10", 4),
        ]
        assert [len(file.upload.parts) for file in staged if file.upload is not None] == [2, 1]
        assert list(store.files(TABLE)) == []
        ledger.commit(
            staging, self.moves(staging, {str(file.target): file for file in staged}), {TopicPartition("t", 0): 1}, {}
        )
        assert store.read(f"{TABLE}/partition=7/0-1") == large
        assert list(store.files(TABLE)) == ["1-10", "partition=7/0-1"]
        assert bucket.uploads("topics") == []
        assert list(bucket.below(staging)) == []

    def test_an_attempt_that_executors_give_up_leaves_no_upload(self, store: Store, bucket: S3Objects) -> None:
        folder = f"{self.opened(store).new_staging()}/t-1/t"
        store.begin(folder, TABLE)
        given_up = upload_place(store, folder).begin(0, 1)
        stream = given_up.open("x")
        stream.write(b"1")
        given_up.discard()
        stream.close()
        assert bucket.uploads("topics") == []
        assert list(store.staged(folder)) == []

    def test_uploads_that_nothing_describes_are_aborted(self, store: Store, bucket: S3Objects) -> None:
        """Those of a task that was killed before it closed its file."""
        staging, _ = self.staged(store, self.opened(store), "x")
        bucket._client.create_multipart_upload(Bucket=bucket._bucket, Key=bucket.key(f"{TABLE}/y"))
        bucket._client.create_multipart_upload(Bucket=bucket._bucket, Key=bucket.key("topics/tt/z"))
        assert len(bucket.uploads("topics")) == 3
        self.opened(store)
        assert [path for path, _ in bucket.uploads("topics")] == ["topics/tt/z"]
        assert list(bucket.below(staging)) == []

    def test_nothing_is_aborted_after_another_driver_took_over(self, store: Store, bucket: S3Objects) -> None:
        staging, _ = self.staged(store, self.opened(store), "x")

        def overtaken() -> None:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            store.abandon(staging, overtaken)
        assert len(bucket.uploads("topics")) == 1

    def test_uploads_that_a_load_has_not_used_are_aborted_with_it(self, store: Store, bucket: S3Objects) -> None:
        ledger = self.opened(store)
        staging, files = self.staged(store, ledger, "empty", "full")
        moves = [move for move in self.moves(staging, files) if move.target.endswith("full")]
        ledger.commit(staging, moves, {TopicPartition("t", 0): 1}, {})
        assert list(store.files(TABLE)) == ["full"]
        assert bucket.uploads("topics") == []
        assert list(bucket.below(staging)) == []

    def test_an_upload_that_the_store_expired_is_named(self, store: Store, bucket: S3Objects) -> None:
        ledger = self.opened(store)
        staging, files = self.staged(store, ledger, "x")
        for path, upload in bucket.uploads("topics"):
            bucket.abort(path, upload)
        with pytest.raises(LedgerError, match=r"topics/t/x, .* is gone\. The store may have removed its unfinished"):
            ledger.commit(staging, self.moves(staging, files), {TopicPartition("t", 0): 1}, {})

    def test_a_table_has_one_owner(self, store: Store, s3: S3Server, url: str) -> None:
        self.commit(store, self.opened(store), 1)
        other = open_store(config_of(s3, url), _no_spark)
        ledger = Ledger(other, "other")
        ledger.open()
        with pytest.raises(ConnectError, match=r"belongs to connector sink: give this one a topics\.dir of its own"):
            other.begin(f"{ledger.new_staging()}/t-1/t", TABLE)


def test_the_data_files_of_a_table_are_there_at_the_end_of_their_attempt(s3: S3Server, url: str) -> None:
    config = config_of(s3, url)
    place = ObjectFolder(config.s3_account, s3.bucket, f"{config.location.path}/t/data", 5 << 20)
    store, bucket = (S3Objects(place.account, s3.bucket, prefix) for prefix in (config.location.path, place.folder))
    small, large = b"PAR1", bytes(range(256)) * 4 * (6 << 10)
    for attempt, ends in enumerate(("finish", "discard", "discard after all is closed")):
        writing = place.begin(0, attempt)
        for name, data in {"small": small, "large": large}.items():
            stream = writing.open(f"mark-{attempt}-{name}")
            stream.write(data)
            assert stream.tell() == len(data)
            if ends != "discard":
                stream.close()
        assert [path for path, _ in store.uploads("t/data")] == [f"t/data/mark-{attempt}-large"]
        if ends == "finish":
            assert bucket.size("mark-0-large") is None
            writing.finish()
        writing.discard()
    assert place.names("mark") == ["mark-0-large", "mark-0-small"]
    assert [bucket.read(name) for name in place.names("mark")] == [large, small]
    assert place.names("mark-1") == place.names("other") == []
    assert store.uploads("t/data") == []


def upload_place(store: Store, folder: str) -> UploadPlace:
    place = store.part_place(folder, TABLE, {})
    assert isinstance(place, UploadPlace)
    return replace(place, part_size=5 << 20)


def _no_spark() -> Any:
    raise AssertionError("an object store needs no Spark")
