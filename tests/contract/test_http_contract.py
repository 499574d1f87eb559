"""The HTTP connectors keep the contract."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from connect.testing import SinkConnectorTests, SourceConnectorTests
from connectors.http import HttpSinkConnector, HttpSourceConnector
from equipment.fakes.http_api import Answer, HttpApi, paged, serving_api
from equipment.proofs import thorough

ITEMS = [{"id": number, "name": f"item {number}", "at": f"2024-01-01T00:00:{number:02d}Z"} for number in range(1, 12)]


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as served:
        served.route("/items", paged(ITEMS, 4))
        served.route("/each", paged(ITEMS, 1))
        served.route("/newest", paged(ITEMS[::-1], 4))
        served.route("/all", paged(ITEMS, 100))
        served.route("/in", Answer(204))
        yield served


class TestHttpSource(SourceConnectorTests):
    """A list, divided in every way."""

    connector_class = HttpSourceConnector

    @pytest.fixture(
        params=["next_link", "offset", "newest", *thorough("none", "link_header", "cursor", "page", "text")]
    )
    def props(self, api: HttpApi, request: pytest.FixtureRequest) -> Mapping[str, str]:
        mode = request.param
        common = {
            "kafka.topic": "items",
            "http.request.url": f"{api.url}/items",
            "http.response.list.pointer": "/items",
            "http.response.record.offset.pointer": "id=/id",
            "http.response.record.key.pointer": "/id",
            "http.timer.interval.millis": "1",
            "http.timer.catchup.interval.millis": "1",
            "http.paging.size": "4",
            "http.paging": mode,
            "http.auth.type": "BASIC",
            "http.auth.user": "me",
            "http.auth.password": "not telling",
        }
        match mode:
            case "none":
                return {**common, "http.request.url": f"{api.url}/all"}
            case "next_link":
                more = {"http.paging.next.pointer": "/next", "http.paging.end": "continue"}
            case "link_header":
                more = {"http.response.record.timestamp.pointer": "/at"}
            case "cursor":
                more = {
                    "http.paging.next.pointer": "/cursor",
                    "http.request.params": "cursor=${page.cursor}",
                    "http.paging.end": "stop",
                }
            case "offset":
                more = {"http.request.params": "offset=${page.offset}", "http.paging.end": "continue"}
                more |= {"http.paging.size": "1", "http.request.url": f"{api.url}/each"}
                more["http.paging.total.pointer"] = "/total"
            case "page":
                more = {"http.request.params": "page=${page.number}", "http.paging.end": "stop"}
                more |= {"http.paging.size": "1", "http.request.url": f"{api.url}/each"}
                more["http.paging.total.header"] = "X-Total-Count"
            case "newest":
                more = {
                    "http.request.url": f"{api.url}/newest",
                    "http.paging": "link_header",
                    "http.response.list.order.direction": "DESC",
                }
            case _:
                more = {"http.paging": "none", "http.response.record.mapper": "SchemedKvSourceRecordMapper"}
                more["http.request.url"] = f"{api.url}/all"
        return common | more


class TestHttpSink(SinkConnectorTests):
    """Records one by one, in batches, and as JSON arrays."""

    connector_class = HttpSinkConnector

    @pytest.fixture(params=["in order", "array", *thorough("single", "lines")])
    def props(self, api: HttpApi, request: pytest.FixtureRequest) -> Mapping[str, str]:
        common = {"http.url": f"{api.url}/in", "retry.backoff.ms": "1", "http.request.body": '{"text": ${value}}'}
        common["max.retries"] = "-1"
        match request.param:
            case "single":
                return common
            case "in order":
                return {**common, "http.max.in.flight": "1", "http.timeout": "20"}
            case "lines":
                return {**common, "batching.enabled": "true", "batch.max.size": "2"}
            case _:
                del common["http.url"]
                return {**common, "http.api.url": f"{api.url}/in", "batch.max.size": "3", "batch.json.as.array": "true"}

    @pytest.fixture
    def written(self, api: HttpApi) -> Callable[[], Iterable[Any]]:
        def read() -> list[str]:
            bodies = [asked.body.decode() for asked in api.asked_of("/in")]
            parsed = [json.loads(line) for body in bodies for line in body.split("\n") if line]
            flat = [item for each in parsed for item in (each if isinstance(each, list) else [each])]
            return [item["text"] for item in flat]

        return read

    @pytest.fixture
    def outage(self, api: HttpApi) -> AbstractContextManager[object]:
        @contextmanager
        def away() -> Iterator[None]:
            api.route("/in", Answer(503, "not now"))
            api.asked.clear()
            yield
            api.asked.clear()
            api.route("/in", Answer(204))

        return away()
