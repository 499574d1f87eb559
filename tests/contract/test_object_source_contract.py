"""The source of objects keeps the contract."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping

import pytest

from connect.testing import SourceConnectorTests
from connectors.objects.source import S3SourceConnector
from equipment.servers.s3 import S3Server, running_moto

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    with running_moto() as server:
        yield server


class TestS3Source(SourceConnectorTests):
    """Objects of several formats."""

    connector_class = S3SourceConnector

    @pytest.fixture
    def props(self, moto: S3Server) -> Mapping[str, str]:
        bucket, client = moto.make_bucket(), moto.client()
        for key, data in (
            ("a.csv", b'id,name\n1,one\n2,"two\nlines"\n'),
            ("b.jsonl.gz", gzip.compress(b'{"id": 3}\n{"id": 4}\n')),
            ("c.txt", b"five\n\nseven"),
        ):
            client.put_object(Bucket=bucket, Key=key, Body=data)
        own = {"s3.bucket.name": bucket, "topic": "rows", "max.poll.records": "2", "poll.interval.ms": "1"}
        return {**moto.props, **own}
