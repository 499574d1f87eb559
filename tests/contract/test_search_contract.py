"""The sinks of Elasticsearch and OpenSearch keep the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from connect.data import SinkRecord
from connect.testing import SinkConnectorTests
from connect.testing.samples import sink_records
from connectors.elasticsearch import ElasticsearchSinkConnector, OpenSearchSinkConnector
from equipment.servers.search_servers import SearchServer


class TestElasticsearchSink(SinkConnectorTests):
    """Documents with ids of their own, so that none is there twice."""

    connector_class = ElasticsearchSinkConnector

    @pytest.fixture
    def index(self) -> str:
        return f"contract-{uuid4().hex[:12]}"

    @pytest.fixture
    def props(self, search: SearchServer, index: str) -> Mapping[str, str]:
        return {
            "name": "documents",
            "connection.url": search.url,
            "connection.username": "me",
            "connection.password": "not telling",
            "key.ignore": "true",
            "index.name.template": index,
            "read.timeout.ms": "30000",
            "retry.backoff.ms": "10",
            "max.retries": "1000",
        }

    @pytest.fixture
    def records(self) -> Sequence[SinkRecord]:
        return sink_records([{"number": number} for number in range(12)], partitions=2)

    def expected(self, record: SinkRecord) -> Any:
        return record.value["number"]

    @pytest.fixture
    def written(self, search: SearchServer, index: str) -> Callable[[], Iterable[Any]]:
        return lambda: [document["number"] for document in search.documents(index).values()]

    @pytest.fixture
    def outage(self, search: SearchServer) -> AbstractContextManager[object]:
        return _down(search)


class TestOpenSearchSink(TestElasticsearchSink):
    """The same with the other options."""

    connector_class = OpenSearchSinkConnector


@contextmanager
def _down(search: SearchServer) -> Iterator[None]:
    search.kill()
    yield
    search.start()
