"""A bucket of S3 is a store of objects: with moto, and with versitygw where it is."""

from __future__ import annotations

from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.s3 import S3Objects
from connect.kits.objects.store import ObjectStore, open_store
from equipment.servers.s3 import S3Server
from equipment.stores.objects import ObjectContract, unique_prefix

SILENT = "http://127.0.0.1:1"


def opened(server: S3Server, url: str, **more: str) -> ObjectStore:
    return open_store(parse_location(url), ObjectOptions.parse({**server.props, **more}))


class TestS3Objects(ObjectContract):
    @pytest.fixture
    def store(self, s3: S3Server) -> ObjectStore:
        return opened(s3, f"s3://{s3.bucket}/{unique_prefix()}/lake")

    def test_a_put_whose_answer_was_lost_succeeds(self, store: ObjectStore, s3: S3Server) -> None:
        assert isinstance(store, S3Objects)
        client = store._client
        store._client = _Forgetful(client)
        store.create("manifest", b"mine")
        assert store.read("manifest") == b"mine"
        store._client = client
        with pytest.raises(FileExistsError):
            store.create("manifest", b"mine")


class _Forgetful:
    """A client whose first put arrives twice, as when its answer is lost and the library tries again."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put_object(self, **request: Any) -> Any:
        self._client.put_object(**request)
        return self._client.put_object(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


# -- errors ------------------------------------------------------------------------------------------------------


def test_a_bucket_that_is_not_there_is_named(s3: S3Server) -> None:
    with pytest.raises(ConnectError, match="There is no bucket no-such-bucket-here"):
        opened(s3, "s3://no-such-bucket-here/lake").create("a", b"")


def test_a_service_that_does_not_answer_is_tried_again(s3: S3Server) -> None:
    with pytest.raises(RetriableError, match="cannot be reached"):
        opened(s3, "s3://bucket", **{"s3.endpoint": SILENT}).read("a")


def test_no_secret_is_in_a_configuration_or_an_error(s3: S3Server) -> None:
    options = ObjectOptions.parse({**s3.props, "s3.endpoint": SILENT, "aws.secret.access.key": "hush"})
    assert "hush" not in repr(options) + repr(options.s3_account)
    with pytest.raises(RetriableError) as caught:
        open_store(parse_location("s3://bucket"), options).read("a")
    assert "hush" not in repr(caught.value) + repr(caught.value.__cause__)
