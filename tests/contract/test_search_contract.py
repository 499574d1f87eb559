"""The connectors of Elasticsearch and OpenSearch keep the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from connect.data import SinkRecord
from connect.testing import SinkConnectorTests, SourceConnectorTests
from connect.testing.samples import sink_records
from connectors.elasticsearch import (
    ElasticsearchSinkConnector,
    ElasticsearchSourceConnector,
    OpenSearchSinkConnector,
)
from equipment.proofs import thorough
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


@pytest.mark.thorough
class TestOpenSearchSink(TestElasticsearchSink):
    """The same with the other options."""

    connector_class = OpenSearchSinkConnector


@pytest.fixture(scope="module")
def indexes(search: SearchServer) -> str:
    """Two indexes, which all tests of the source read: the beginning of their names."""
    name = f"contract-{uuid4().hex[:12]}"
    documents = [{"number": number, "at": number // 3, "name": f"item {number}"} for number in range(11)]
    write(search, f"{name}-1", documents[:8])
    write(search, f"{name}-2", documents[8:])
    return name


class TestElasticsearchSource(SourceConnectorTests):
    """Documents by a field that several have in common, and by two fields; with and without schemas."""

    connector_class = ElasticsearchSourceConnector

    @pytest.fixture(params=["ties", *thorough("two fields", "schemas", "pattern")])
    def props(self, search: SearchServer, indexes: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
        name = indexes
        common = {
            "name": "documents",
            "connection.url": search.url,
            "connection.username": "me",
            "connection.password": "not telling",
            "index": f"{name}-1,{name}-2",
            "cursor.field": "at",
            "cursor.delay.ms": "0",
            "batch.size": "4",
            "poll.interval.ms": "1",
            "retry.backoff.ms": "10",
        }
        match request.param:
            case "two fields":
                return {**common, "cursor.field": "at,number", "batch.size": "2"}
            case "schemas":
                return {**common, "value.schema": "document", "topic": "documents"}
            case "pattern":
                return {**common, "index": f"{name}-*", "index.poll.interval.ms": "100"}
        return common


def write(search: SearchServer, index: str, documents: Sequence[Mapping[str, Any]]) -> None:
    """Index documents with ids that are not in the order of their numbers, in two shards."""
    search.ask("PUT", f"/{index}", {"settings": {"number_of_shards": 2, "number_of_replicas": 0}})
    lines = [line for each in documents for line in ({"index": {"_id": str(each["number"] * 7 % 11)}}, each)]
    search.bulk(index, lines)


@contextmanager
def _down(search: SearchServer) -> Iterator[None]:
    search.kill()
    yield
    search.start()
