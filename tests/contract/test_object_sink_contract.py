"""The object sinks keep the contract, in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from connect.testing import SinkConnectorTests
from connectors.objects import FolderSinkConnector, S3SinkConnector
from equipment.brokers.proxy import Proxy
from equipment.ports import own_port
from equipment.proofs import thorough
from equipment.servers.s3 import S3Server

ROTATIONS: dict[str, dict[str, str]] = {
    "records": {"flush.size": "3"},
    "bytes": {"file.max.bytes": "30", "rotate.on.offset.commit": "true"},
    "clock": {"rotate.schedule.interval.ms": "1", "rotate.on.offset.commit": "true"},
    "commits": {"rotate.on.offset.commit": "true"},
    "combined": {"combine.partitions": "true", "rotate.on.offset.commit": "true"},
}


class TestFolderSink(SinkConnectorTests):
    """Texts, whatever ends the files."""

    connector_class = FolderSinkConnector
    exactly_once = True

    @pytest.fixture(params=["bytes", "combined", *thorough("records", "clock", "commits")])
    def props(self, tmp_path: Path, request: pytest.FixtureRequest) -> Mapping[str, str]:
        return {
            "name": "files",
            "store.url": str(tmp_path),
            "format.class": "JsonFormat",
            "retry.backoff.ms": "1",
            **ROTATIONS[request.param],
        }

    @pytest.fixture
    def written(self, tmp_path: Path) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            files = sorted((tmp_path / "topics").rglob("*.json"))
            return [json.loads(line) for file in files for line in file.read_text().splitlines()]

        return read


@pytest.fixture
def relayed(s3: S3Server) -> Iterator[tuple[S3Server, Proxy, int]]:
    """The server behind a relay, which can be cut."""
    port, target = own_port(), urlsplit(s3.endpoint).port
    assert target is not None
    proxy = Proxy({port: target})
    yield replace(s3, endpoint=f"http://127.0.0.1:{port}"), proxy, port
    proxy.close()


@pytest.mark.thorough
@pytest.mark.integration
class TestS3Sink(SinkConnectorTests):
    """The same in a bucket."""

    connector_class = S3SinkConnector
    exactly_once = True

    @pytest.fixture
    def props(self, relayed: tuple[S3Server, Proxy, int]) -> Mapping[str, str]:
        server, *_ = relayed
        rules = {"format.class": "JsonFormat", "file.max.bytes": "30", "rotate.on.offset.commit": "true"}
        rules |= {"retry.backoff.ms": "1", "s3.part.retries": "0"}
        return {"name": "objects", "s3.bucket.name": server.make_bucket(), **server.props, **rules}

    @pytest.fixture
    def outage(self, relayed: tuple[S3Server, Proxy, int]) -> AbstractContextManager[object]:
        _, proxy, port = relayed

        @contextmanager
        def away() -> Iterator[None]:
            proxy.cut(port)
            yield
            proxy.heal(port)

        return away()

    @pytest.fixture
    def written(self, s3: S3Server, props: Mapping[str, str]) -> Callable[[], Iterable[Any]]:
        def read() -> list[Any]:
            client, bucket = s3.client(), props["s3.bucket.name"]
            found = client.list_objects_v2(Bucket=bucket, Prefix="topics/").get("Contents", ())
            bodies = [client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read() for item in found]
            return [json.loads(line) for body in bodies for line in body.splitlines()]

        return read
