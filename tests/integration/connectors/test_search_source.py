"""The source of Elasticsearch and OpenSearch on a real node: what it finds by which names, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError
from connect.testing import StoredOffsets, run_source, running_source
from connectors.elasticsearch import ElasticsearchSourceConnector
from equipment.servers.search_servers import SearchServer
from equipment.waiting import wait_until

pytestmark = [pytest.mark.integration]


@pytest.fixture
def prefix() -> str:
    return f"source-{uuid4().hex[:12]}"


def add(search: SearchServer, index: str, *documents: Mapping[str, Any], action: str = "index") -> None:
    lines = [line for each in documents for line in ({action: {"_id": f"d{each['n']}"}}, each)]
    search.bulk(index, lines)


def props(search: SearchServer, index: str, **more: str) -> dict[str, str]:
    common = {
        "name": "documents",
        "connection.url": search.url,
        "index": index,
        "cursor.field": "n",
        "cursor.delay.ms": "0",
        "poll.interval.ms": "10",
        "read.timeout.ms": "60000",
    }
    return common | {key.replace("_", "."): value for key, value in more.items()}


def numbers(records: Sequence[SourceRecord]) -> list[int]:
    return [record.value["n"] for record in records]


def test_an_alias_is_read_as_one_and_the_header_tells_the_index(search: SearchServer, prefix: str) -> None:
    for name, first in (("a", 0), ("b", 1)):
        search.ask("PUT", f"/{prefix}-{name}", {"aliases": {f"{prefix}-all": {}}})
        add(search, f"{prefix}-{name}", *({"n": number} for number in range(first, 10, 2)))
    found = run_source(ElasticsearchSourceConnector, props(search, f"{prefix}-all"), timeout=120)
    assert numbers(found) == list(range(10))
    assert {record.topic for record in found} == {f"{prefix}-all"}
    assert [record.headers[0].value for record in found] == [f"{prefix}-a", f"{prefix}-b"] * 5


def test_documents_are_chosen_and_their_fields_too(search: SearchServer, prefix: str) -> None:
    add(search, prefix, *({"n": n, "even": n % 2 == 0, "secret": "x"} for n in range(6)), {"m": 1, "n": None})
    given = props(search, prefix, query='{"term": {"even": true}}', fields_exclude="secret", topic="chosen")
    found = run_source(ElasticsearchSourceConnector, given, timeout=120)
    assert [record.value for record in found] == [{"n": n, "even": True} for n in (0, 2, 4)]
    assert found[0].topic == "chosen"


def test_what_comes_is_read_on_and_what_exists_not_yet_is_awaited(search: SearchServer, prefix: str) -> None:
    with running_source(ElasticsearchSourceConnector, props(search, prefix), StoredOffsets()) as (run,):
        for _ in range(3):
            assert run.poll() == []
        add(search, prefix, {"n": 1}, {"n": 2})
        wait_until("two are read", lambda: run.poll() is not None and len(run.records) >= 2, 120)
        add(search, prefix, {"n": 3})
        wait_until("the third is read", lambda: run.poll() is not None and len(run.records) >= 3, 120)
        assert numbers(run.records) == [1, 2, 3]


def test_documents_without_a_schema_are_reported(search: SearchServer, prefix: str) -> None:
    search.ask("PUT", f"/{prefix}", {"mappings": {"properties": {"a": {"type": "object", "enabled": False}}}})
    add(search, prefix, {"n": 1}, {"n": 2, "a": [1, "x"]}, {"n": 3, "a": [1, 2]})
    given = props(search, prefix, value_schema="document")
    with pytest.raises(ConnectError, match=r"The document d2 of .* has no schema: The elements of a have different"):
        run_source(ElasticsearchSourceConnector, given, timeout=120)
    found = run_source(ElasticsearchSourceConnector, given, timeout=120, tolerate_errors=True)
    assert numbers(found) == [1, 3]


def test_a_field_that_cannot_be_ordered_fails_the_task(search: SearchServer, prefix: str) -> None:
    add(search, prefix, {"n": 1, "name": "some words"})
    with pytest.raises(ConnectError, match=r"name of .* is a text"):
        run_source(ElasticsearchSourceConnector, props(search, prefix, cursor_field="name"), timeout=120)
    found = run_source(ElasticsearchSourceConnector, props(search, prefix, cursor_field="name.keyword"), timeout=120)
    assert numbers(found) == [1]


def test_a_data_stream_is_read_as_one(search: SearchServer, prefix: str) -> None:
    if search.product != "opensearch":
        pytest.skip("the small build of Elasticsearch has no data streams")
    search.ask("PUT", f"/_index_template/{prefix}", {"index_patterns": [f"{prefix}*"], "data_stream": {}})
    search.ask("PUT", f"/_data_stream/{prefix}-s")
    times = [{"n": n, "@timestamp": f"2024-01-01T00:00:0{n}Z"} for n in range(6)]
    add(search, f"{prefix}-s", *times[:3], action="create")
    search.ask("POST", f"/{prefix}-s/_rollover")
    add(search, f"{prefix}-s", *times[3:], action="create")
    given = props(search, f"{prefix}*", cursor_field="@timestamp")
    found = run_source(ElasticsearchSourceConnector, given, timeout=120)
    assert numbers(found) == list(range(6))
    assert {record.topic for record in found} == {f"{prefix}-s"}
    assert len({record.headers[0].value for record in found}) == 2
    assert [*found[-1].source_partition.values()] == [f"{prefix}-s"]
