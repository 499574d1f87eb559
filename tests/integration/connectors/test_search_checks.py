"""What validations of the connectors of Elasticsearch and OpenSearch find by asking the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

import pytest

from connectors.elasticsearch import (
    ElasticsearchSinkConnector,
    ElasticsearchSourceConnector,
    OpenSearchSinkConnector,
)
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.servers.search_servers import SearchServer

pytestmark = [pytest.mark.integration]

SINK, OPENSEARCH, SOURCE = ElasticsearchSinkConnector, OpenSearchSinkConnector, ElasticsearchSourceConnector
MAPPING: Final = "topic.to.external.resource.mapping"


@pytest.fixture(scope="module")
def prefix(search: SearchServer) -> str:
    """Two indexes, an alias of them, and an index that is blocked: the beginning of their names."""
    made = f"checks-{uuid4().hex[:12]}"
    index = {
        "settings": {"number_of_replicas": 0},
        "aliases": {f"{made}-alias": {}},
        "mappings": {"properties": {"text": {"type": "text"}, "at": {"type": "date"}, "ip": {"type": "ip"}}},
    }
    search.ask("PUT", f"/{made}-a", index)
    search.ask("PUT", f"/{made}-b", index)
    search.ask("PUT", f"/{made}-c", {"settings": {"number_of_replicas": 0, "index.blocks.write": True}})
    search.bulk(f"{made}-a", [{"index": {"_id": "1"}}, {"at": "2024-01-01"}])
    return made


def told(connector: Any, url: str, **props: str) -> list[tuple[str, str]]:
    given = {key.replace("_", "."): value for key, value in props.items()}
    values = connector.config_class.validate({"name": "c", "connection.url": url, **given})
    return [(value.name, str(error)) for value in values for error in value.errors]


@pytest.mark.parametrize(
    ("connector", "props", "problem"),
    [
        (SINK, {"topics": "P-a"}, None),
        (SINK, {"topics": "P-new"}, None),
        (SINK, {"topics": "P-c"}, ("connection.url", 'Nothing can be written to P-c: run PUT P-c/_settings {"index.b')),
        (
            SINK,
            {"topics": "P-alias"},
            ("connection.url", "P-alias is an alias of P-a, P-b, none of which is written to"),
        ),
        (
            SINK,
            {"topics": "t", "external_resource_usage": "INDEX", "MAPPING": "t:P-no"},
            (MAPPING, "P-no, to which the"),
        ),
        (
            SINK,
            {"topics": "t,u", "external_resource_usage": "INDEX", "MAPPING": "t:P-a"},
            (MAPPING, f"{MAPPING} lacks the topic u: add u:NAME."),
        ),
        (
            SINK,
            {"topics": "t", "external_resource_usage": "DATASTREAM", "MAPPING": "t:P-a"},
            (MAPPING, "P-a, to which the records of t go, is an index, and the configuration asks for a data stream."),
        ),
        (
            OPENSEARCH,
            {"topics": "P-ds", "data_stream_enabled": "true"},
            (
                "connection.url",
                "There is no data stream P-ds, and no index template by which it could be made. Run PUT",
            ),
        ),
        (SOURCE, {"index": "P-a", "cursor_field": "at"}, None),
        (SOURCE, {"index": "P-no", "cursor_field": "at"}, None),
        (SOURCE, {"index": "P-b", "cursor_field": "none"}, None),
        (SOURCE, {"index": "P-no", "cursor_field": "at", "run_until": "drained"}, ("index", "P-no does not exist")),
        (SOURCE, {"index": "P-a", "cursor_field": "text"}, ("cursor.field", "text of P-a is a text, by which nothing")),
        (
            SOURCE,
            {"index": "P-*", "cursor_field": "ip"},
            ("cursor.field", "ip of P-* is of type ip: cursor.field needs"),
        ),
        (
            SOURCE,
            {"index": "P-a", "cursor_field": "none"},
            ("cursor.field", "No document of P-a has none, so none would"),
        ),
    ],
)
def test_what_would_fail_is_told_with_what_to_do(
    search: SearchServer, prefix: str, connector: Any, props: dict[str, str], problem: tuple[str, str] | None
) -> None:
    given = {key.replace("MAPPING", MAPPING): value.replace("P-", f"{prefix}-") for key, value in props.items()}
    found = told(connector, search.url, **given)
    if problem is None:
        assert found == []
    else:
        ((key, text),) = found
        assert key == problem[0]
        assert text.replace(f"{prefix}-", "P-").startswith(problem[1])


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        yield served


def test_a_user_that_the_cluster_does_not_know_is_told_without_the_password(api: HttpApi) -> None:
    api.route("/", Answer(401, b'{"error": "unable to authenticate: hush"}'))
    ((key, text),) = told(SINK, api.url, topics="t", connection_username="me", connection_password="hush")
    assert key == "connection.username"
    assert text.endswith("Correct the credentials.")
    assert "hush" not in text


def test_a_cluster_that_is_too_old_is_told(api: HttpApi) -> None:
    api.route("/", Answer(200, b'{"version": {"number": "6.8.23"}}'))
    assert told(SINK, api.url, topics="t") == [
        ("connection.url", "The cluster is Elasticsearch 6.8, and 7.0 is the oldest supported.")
    ]


def test_rights_that_are_missing_are_told(api: HttpApi) -> None:
    api.route("/", Answer(200, b'{"version": {"number": "8.19.0"}}'))
    api.route("/_resolve/index/t", Answer(404, b"{}"))
    rights = b'{"username": "me", "index": {"t": {"create_index": false, "write": false, "view_index_metadata": true}}}'
    api.route("/_security/user/_has_privileges", Answer(200, rights))
    assert told(SINK, api.url, topics="t") == [
        ("connection.username", "me lacks rights on t: create_index, write. Grant them to a role of the user.")
    ]


def test_a_cluster_that_does_not_answer_is_told_in_seconds() -> None:
    assert told(SINK, "http://127.0.0.1:9", topics="t") == [
        ("connection.url", "The cluster cannot be reached: http://127.0.0.1:9/ does not answer: Connection refused.")
    ]


def test_a_cluster_that_is_silent_is_told_in_seconds(api: HttpApi) -> None:
    def silent(_: Asked) -> Answer:
        api.closing.wait(60)
        return Answer()

    api.route("/", silent)
    started = time.monotonic()
    ((key, text),) = told(SINK, api.url, topics="t")
    assert (key, time.monotonic() - started < 30) == ("connection.url", True)
    assert "does not answer in time" in text
