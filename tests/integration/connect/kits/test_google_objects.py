"""A bucket of Google Cloud Storage is a store of objects."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.gcs import GoogleObjects
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.store import ObjectStore, open_store
from equipment.servers.gcs import GcsServer
from equipment.stores.objects import ObjectContract, unique_prefix


def opened(server: GcsServer, url: str) -> ObjectStore:
    return open_store(parse_location(url), ObjectOptions.parse(server.props))


@pytest.mark.thorough
class TestGoogleObjects(ObjectContract):
    @pytest.fixture
    def store(self, gcs: GcsServer) -> ObjectStore:
        return opened(gcs, f"gs://{gcs.bucket}/{unique_prefix()}/lake")

    def test_a_put_whose_answer_was_lost_succeeds(self, store: ObjectStore) -> None:
        assert isinstance(store, GoogleObjects)
        store._bucket = _Forgetful(store._bucket)
        store.create("manifest", b"mine")
        assert store.read("manifest") == b"mine"


class _Forgetful:
    """A bucket to which each upload arrives twice, as when its answer is lost and the library tries again."""

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket

    def blob(self, name: str) -> Any:
        blob = self._bucket.blob(name)
        upload = blob.upload_from_string

        def twice(*args: Any, **request: Any) -> None:
            upload(*args, **request)
            upload(*args, **request)

        blob.upload_from_string = twice
        return blob


# -- errors ------------------------------------------------------------------------------------------------------


def test_a_bucket_that_is_not_there_is_named(gcs: GcsServer) -> None:
    store = opened(gcs, "gs://no-such-bucket-here/lake")
    for ask in (lambda: store.create("a", b""), lambda: store.names("a")):
        with pytest.raises(ConnectError, match="There is no bucket no-such-bucket-here"):
            ask()


def test_a_service_that_does_not_answer_is_tried_again() -> None:
    account = ObjectOptions.parse({"gcs.endpoint": "http://127.0.0.1:1"}).google_account
    with pytest.raises(RetriableError, match="cannot be reached"):
        GoogleObjects(replace(account, patience=0.1), "bucket", "").read("a")


def test_a_key_that_is_none_is_refused_without_a_word_of_it() -> None:
    key = json.dumps(
        {
            "type": "service_account",
            "client_email": "a@b",
            "private_key_id": "1",
            "private_key": "hush",
            "token_uri": "-",
        }
    )
    options = ObjectOptions.parse({"gcs.credentials.json": key})
    assert "hush" not in repr(options) + repr(options.google_account)
    with pytest.raises(ConnectError, match="Signing in to Google Cloud Storage failed") as caught:
        open_store(parse_location("gs://bucket"), options).read("a")
    assert "hush" not in repr(caught.value) + repr(caught.value.__cause__)
