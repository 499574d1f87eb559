"""The sinks of Elasticsearch and OpenSearch on a real node, and on a server that refuses."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from connect.data import Schema, SinkBatch, SinkRecord, TopicPartition, decimal_schema
from connect.errors import ConnectError, RetriableError
from connect.testing import ErrantRecords, SinkTaskTestContext
from connectors.elasticsearch import ElasticsearchSinkConnector, OpenSearchSinkConnector
from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.servers.search_servers import SearchServer
from equipment.waiting import wait_until

pytestmark = [pytest.mark.integration]

Tasks = Callable[..., Any]
Call = tuple[str, str, Any]
"""Method, path and body of a request."""


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:12]}"


@pytest.fixture
def tasks(topic: str) -> Iterator[Tasks]:
    """Starts tasks on a URL."""
    made: list[Any] = []

    def make(
        url: str, reporter: ErrantRecords[Any] | None = None, connector: Any = ElasticsearchSinkConnector, **props: str
    ) -> Any:
        given = {key.replace("_", "."): value for key, value in props.items()}
        config = connector.task_class.config_class.parse(
            {"name": "c", "connection.url": url, "retry.backoff.ms": "10", "read.timeout.ms": "30000", **given}
        )
        context = SinkTaskTestContext([TopicPartition(topic, 0)], errant_record_reporter=reporter)
        made.append(connector.task_class(config, context))
        made[-1].start()
        return made[-1]

    yield make
    for task in made:
        task.stop()


def records(topic: str, *values: Any, keys: Sequence[Any] = (), schema: Schema | None = None, first: int = 0) -> Any:
    made = [
        SinkRecord(
            topic,
            value,
            schema,
            keys[number] if keys else f"k{number}",
            partition=0,
            offset=first + number,
            timestamp=1_700_000_000_000,
            original_topic=topic,
            original_partition=0,
            original_offset=first + number,
        )
        for number, value in enumerate(values)
    ]
    return SinkBatch.from_records(made)


def write(task: Any, batches: Sequence[SinkBatch]) -> None:
    for batch in batches:
        wait_until("the batch is put", lambda batch=batch: is_put(task, batch))
    end = {TopicPartition(batches[-1].original_topic, 0): batches[-1].original_offsets[-1] + 1}
    wait_until("all is accepted", lambda: task.pre_commit(end) == end, 120)


def is_put(task: Any, batch: SinkBatch) -> bool:
    """Put a batch as the runtime does, which comes back with it after a passing error."""
    try:
        task.put(batch)
    except RetriableError:
        return False
    return True


def test_documents_are_written_changed_and_deleted_in_order(search: SearchServer, tasks: Tasks, topic: str) -> None:
    task = tasks(search.url, behavior_on_null_values="delete", batch_size="3", schema_ignore="true")
    values = [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}, None, {"n": 5}]
    write(task, records(topic, *values, keys=["a", "b", "a", "c", "b", "a"]))
    assert search.documents(topic) == {"a": {"n": 5}, "c": {"n": 3}}
    write(task, records(topic, *values, keys=["a", "b", "a", "c", "b", "a"]))
    assert search.documents(topic) == {"a": {"n": 5}, "c": {"n": 3}}, "what comes again is older"


def test_upserts_merge_fields_and_the_last_one_wins(search: SearchServer, tasks: Tasks, topic: str) -> None:
    task = tasks(
        search.url, write_method="upsert", schema_ignore="true", batch_size="2", behavior_on_null_values="delete"
    )
    changes = [{"a": 1}, {"b": 1}, *({"b": n} for n in range(2, 60)), {"c": 3}]
    write(task, records(topic, *changes, keys=["x"] * len(changes)))
    assert search.documents(topic) == {"x": {"a": 1, "b": 59, "c": 3}}
    write(task, records(topic, None, keys=["x"], first=5))
    assert search.documents(topic) == {}


def test_a_mapping_is_made_of_the_schema(search: SearchServer, tasks: Tasks, topic: str) -> None:
    schema = Schema.struct({"price": decimal_schema(2), "name": Schema.string(), "day": Schema.int16(optional=True)})
    write(tasks(search.url), records(topic, {"price": Decimal("1.10"), "name": "x", "day": None}, schema=schema))
    (found,) = search.ask("GET", f"/{topic}/_mapping").values()
    text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    assert found["mappings"]["properties"] == {"price": {"type": "double"}, "name": text, "day": {"type": "short"}}


def test_a_mapping_of_others_is_left_alone(search: SearchServer, tasks: Tasks, topic: str) -> None:
    search.ask("PUT", f"/{topic}", {"mappings": {"properties": {"name": {"type": "keyword"}}}})
    write(tasks(search.url), records(topic, {"name": "x"}, schema=Schema.struct({"name": Schema.string()})))
    (found,) = search.ask("GET", f"/{topic}/_mapping").values()
    assert found["mappings"]["properties"] == {"name": {"type": "keyword"}}


def test_one_bad_document_is_reported_with_the_servers_reason_and_the_others_are_written(
    search: SearchServer, tasks: Tasks, topic: str
) -> None:
    search.ask("PUT", f"/{topic}", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(search.url, reporter, errors_tolerance="all")
    write(task, records(topic, {"n": 1}, {"n": "no number"}, {"n": 3}, 7))
    assert search.documents(topic) == {"k0": {"n": 1}, "k2": {"n": 3}}
    told = [(record.original_offset, str(error)) for record, error in reporter.reported]
    assert told[0] == (3, "The value is no object, and a document has to be one.")
    assert told[1][0] == 1
    assert "Indexing failed: " in told[1][1]
    assert "failed to parse field [n] of type [integer]" in told[1][1]


def test_without_tolerance_a_bad_document_fails_the_task(search: SearchServer, tasks: Tasks, topic: str) -> None:
    search.ask("PUT", f"/{topic}", {"mappings": {"properties": {"n": {"type": "integer"}}}})
    with pytest.raises(ConnectError, match=f"the record at offset 0 of {topic}-0 was not written. Indexing failed"):
        write(tasks(search.url), records(topic, {"n": "x"}))
    warned = tasks(search.url, behavior_on_malformed_documents="warn")
    write(warned, records(topic, {"n": "x"}, {"n": 2}))
    assert search.documents(topic) == {"k1": {"n": 2}}


def test_a_data_stream_takes_each_record_once(search: SearchServer, tasks: Tasks, topic: str) -> None:
    props = {
        "data.stream.enabled": "true",
        "data.stream.prefix": "app",
        "data.streams.existing.index.template.name": f"template-{topic}",
        "key.ignore": "true",
        "schema.ignore": "true",
    }
    given = {key.replace(".", "_"): value for key, value in props.items()}
    for _ in range(2):
        write(tasks(search.url, connector=OpenSearchSinkConnector, **given), records(topic, {"n": 1}, {"n": 2}))
    at = 1_700_000_000_000
    assert search.documents(f"app-{topic}") == {
        f"{topic}+0+0": {"n": 1, "@timestamp": at},
        f"{topic}+0+1": {"n": 2, "@timestamp": at},
    }


def test_a_conflict_is_one_only_if_another_has_written(search: SearchServer, tasks: Tasks, topic: str) -> None:
    def opened(reporter: ErrantRecords[Any]) -> Any:
        return tasks(
            search.url, reporter, OpenSearchSinkConnector, behavior_on_version_conflict="report", schema_ignore="true",
            errors_tolerance="all",
        )  # fmt: skip

    again: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    for _ in range(2):
        write(opened(again), records(topic, {"n": 1}, first=7))
    assert again.reported == []
    older: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    write(opened(older), records(topic, {"n": 0}, first=3))
    assert [record.original_offset for record, _ in older.reported] == [3]
    assert search.documents(topic) == {"k0": {"n": 1}}


@pytest.mark.parametrize(
    ("index", "document", "reason"),
    [
        ({"mappings": {"dynamic": "strict", "properties": {"n": {"type": "integer"}}}}, {"x": 1}, "strict_dynamic"),
        ({"settings": {"index.mapping.total_fields.limit": 2}}, {"a": 1, "b": 2}, "Limit of total fields"),
        ({"mappings": {"properties": {"k": {"type": "keyword"}}}}, {"k": "x" * 40_000}, "immense term"),
        ({}, {"n": {"o": 1}}, "n"),
        ({}, {"a..b": 1}, "a..b"),
    ],
    ids=["strict", "fields", "term", "object", "name"],
)
def test_what_the_cluster_refuses_of_a_document_concerns_it_alone(
    index: Any, document: Any, reason: str, search: SearchServer, tasks: Tasks, topic: str
) -> None:
    search.ask("PUT", f"/{topic}", index)
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(search.url, reporter, errors_tolerance="all")
    write(task, records(topic, {"n": 1}, document, {"n": 3}))
    assert search.documents(topic) == {"k0": {"n": 1}, "k2": {"n": 3}}
    ((refused, error),) = reporter.reported
    assert refused.original_offset == 1
    assert reason in str(error)


def test_a_mapping_that_the_cluster_does_not_take_concerns_its_record(
    search: SearchServer, tasks: Tasks, topic: str
) -> None:
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(search.url, reporter, errors_tolerance="all")
    write(task, records(topic, {"a..b": 1}, schema=Schema.struct({"a..b": Schema.int32()})))
    write(task, records(topic, {"n": 1}, schema=Schema.struct({"n": Schema.int32()}), first=1))
    assert search.documents(topic) == {"k0": {"n": 1}}
    ((refused, error),) = reporter.reported
    assert refused.original_offset == 0
    assert f"refuses to take the mapping of {topic}" in str(error)


def test_what_concerns_every_document_fails_the_task_whatever_is_tolerated(
    search: SearchServer, tasks: Tasks, topic: str
) -> None:
    for name in ("a", "b"):
        search.ask("PUT", f"/{topic}-{name}", {"aliases": {topic: {}}})
    search.ask("PUT", f"/{topic}-c", {"settings": {"index.default_pipeline": f"none-{topic}"}})
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    for name, reason in ((topic, "no write index is defined for alias"), (f"{topic}-c", "does not exist")):
        with pytest.raises(ConnectError, match=rf"{reason}.* Others would be refused as well"):
            write(tasks(search.url, reporter, errors_tolerance="all", index_name_template=name), records(topic, {}))
    assert reporter.reported == []


@pytest.mark.parametrize(
    ("blocks", "frees"),
    [
        (("POST", "/{}/_close", None), ("POST", "/{}/_open", None)),
        (
            ("PUT", "/{}/_settings", {"index.blocks.write": True}),
            ("PUT", "/{}/_settings", {"index.blocks.write": None}),
        ),
        (
            ("PUT", "/_cluster/settings", {"persistent": {"cluster.blocks.read_only": True}}),
            ("PUT", "/_cluster/settings", {"persistent": {"cluster.blocks.read_only": None}}),
        ),
    ],
    ids=["closed", "blocked", "read-only"],
)
def test_an_index_that_cannot_be_written_now_is_waited_for(
    blocks: Call, frees: Call, search: SearchServer, tasks: Tasks, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(search.url, reporter, errors_tolerance="all", max_retries="20")
    write(task, records(topic, {"n": 1}))
    ask(search, blocks, topic)
    try:
        task.put(records(topic, {"n": 2}, first=1)[0])
        wait_until("it was tried again", lambda: is_tried_again(task, topic, caplog.text), 60)
    finally:
        ask(search, frees, topic)
    write(task, records(topic, {"n": 3}, first=2))
    assert search.documents(topic) == {"k0": {"n": 3}}
    assert reporter.reported == []


def ask(search: SearchServer, call: Call, topic: str) -> None:
    method, path, body = call
    search.ask(method, path.format(topic), body)


def is_tried_again(task: Any, topic: str, text: str) -> bool:
    task.pre_commit({TopicPartition(topic, 0): 2})
    return text.count("Trying 1 documents again") >= 3


@pytest.mark.parametrize(
    "refusal",
    [
        (429, "es_rejected_execution_exception"),
        (400, "index_closed_exception"),
        (403, "cluster_block_exception"),
        (404, "index_not_found_exception"),
    ],
    ids=["busy", "closed", "blocked", "missing"],
)
def test_a_document_that_cannot_be_written_now_is_tried_again_until_the_flush_times_out(
    refusal: tuple[int, str], api: HttpApi, tasks: Tasks, topic: str
) -> None:
    seen = serve(api, topic, lambda asked, number: items(asked, refusal if number < 6 else None))
    write(tasks(api.url, schema_ignore="true", max_retries="2"), records(topic, {"n": 1}))
    assert len(seen) == 6


def test_a_block_of_the_whole_cluster_is_waited_for(api: HttpApi, tasks: Tasks, topic: str) -> None:
    block = Answer(403, '{"error":{"type":"cluster_block_exception","reason":"read-only"},"status":403}')
    seen = serve(api, topic, lambda asked, number: items(asked) if number > 2 else block)
    write(tasks(api.url, schema_ignore="true"), records(topic, {"n": 1}))
    assert len(seen) == 3


def test_a_document_that_a_pipeline_cannot_process_is_reported(api: HttpApi, tasks: Tasks, topic: str) -> None:
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    serve(api, topic, lambda asked, _: items(asked, None, (500, "ingest_processor_exception")))
    task = tasks(api.url, reporter, schema_ignore="true", errors_tolerance="all")
    write(task, records(topic, {"n": 1}, {"n": 2}))
    assert [record.original_offset for record, _ in reporter.reported] == [1]


@pytest.mark.parametrize("compression", ["false", "true"])
def test_a_request_over_the_limit_of_the_server_is_divided(
    compression: str, search: SearchServer, tasks: Tasks, topic: str
) -> None:
    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    task = tasks(
        search.url, reporter, errors_tolerance="all", bulk_size_bytes="-1", connection_compression=compression
    )  # fmt: skip
    texts = [secrets.token_hex(size // 2) for size in (500_000, 500_000, 500_000, 500_000, 5_000_000, 10)]
    write(task, records(topic, *({"text": text} for text in texts)))
    written = {f"k{number}": {"text": text} for number, text in enumerate(texts) if number != 4}
    assert search.documents(topic) == written
    ((refused, error),) = reporter.reported
    assert refused.original_offset == 4
    assert "the document is too large (HTTP status 413" in str(error)


def test_an_index_that_is_deleted_meanwhile_is_made_again(search: SearchServer, tasks: Tasks, topic: str) -> None:
    task = tasks(search.url, schema_ignore="true")
    write(task, records(topic, {"n": 1}))
    search.ask("DELETE", f"/{topic}")
    write(task, records(topic, {"n": 2}, first=1))
    assert search.documents(topic) == {"k0": {"n": 2}}


def test_a_gzipped_request(search: SearchServer, tasks: Tasks, topic: str) -> None:
    write(tasks(search.url, connection_compression="true", schema_ignore="true"), records(topic, {"n": 1}))
    assert search.documents(topic) == {"k0": {"n": 1}}


@pytest.fixture
def api() -> Iterator[HttpApi]:
    """A cluster that can be made to refuse; its indexes exist."""
    with serving_api() as served:
        yield served


def items(asked: Asked, *errors: tuple[int, str] | None) -> Answer:
    """Answer a bulk request: an error for each item that is to have one."""
    count = len([line for line in asked.body.splitlines() if line.startswith((b'{"index"', b'{"update"'))])
    told = []
    for number in range(count):
        error = errors[number] if number < len(errors) else None
        told.append(
            {
                "index": {"status": 201}
                if error is None
                else {"status": error[0], "error": {"type": error[1], "reason": "r"}}
            }
        )
    return Answer(200, json.dumps({"errors": any(errors), "items": told}))


def serve(api: HttpApi, topic: str, bulk: Any) -> list[list[str]]:
    """Serve an index and bulk requests; the list has the keys of each of these."""
    seen: list[list[str]] = []

    def answer(asked: Asked) -> Answer:
        metas = [json.loads(line) for line in asked.body.splitlines()[::2]]
        seen.append([next(iter(meta.values()))["_id"] for meta in metas])
        made: Answer = bulk(asked, len(seen))
        return made

    api.route(f"/{topic}", Answer(200))
    api.route("/_bulk", answer)
    return seen


def test_an_item_without_room_is_tried_again_alone(api: HttpApi, tasks: Tasks, topic: str) -> None:
    busy = (429, "es_rejected_execution_exception")
    seen = serve(api, topic, lambda asked, number: items(asked, None, busy if number < 3 else None))
    write(tasks(api.url, schema_ignore="true"), records(topic, {"n": 1}, {"n": 2}, {"n": 3}))
    assert seen == [["k0", "k1", "k2"], ["k1"]], "alone it is the first, which has room"


def test_a_node_that_does_not_answer_is_replaced_by_the_next(api: HttpApi, tasks: Tasks, topic: str) -> None:
    seen = serve(api, topic, lambda asked, _: items(asked))
    write(tasks(f"http://127.0.0.1:1,{api.url}", schema_ignore="true"), records(topic, {"n": 1}))
    assert seen == [["k0"]]


def test_retries_end(api: HttpApi, tasks: Tasks, topic: str) -> None:
    seen = serve(api, topic, lambda *_: Answer(503, "busy"))
    task = tasks(api.url, schema_ignore="true", max_retries="2")
    with pytest.raises(
        ConnectError, match=r"did not accept 1 documents.*HTTP status 503: busy They were tried 3 times"
    ):
        write(task, records(topic, {"n": 1}))
    assert len(seen) == 3


def test_a_user_without_rights_fails_the_task_and_no_secret_is_told(api: HttpApi, tasks: Tasks, topic: str) -> None:
    serve(api, topic, lambda *_: Answer(403, '{"error":{"type":"security_exception","reason":"no s3cret for you"}}'))
    task = tasks(api.url, schema_ignore="true", connection_username="me", connection_password="s3cret")
    with pytest.raises(ConnectError, match="does not let this user write") as caught:
        write(task, records(topic, {"n": 1}))
    assert "s3cret" not in str(caught.value)


def test_a_request_that_is_too_large_is_divided(api: HttpApi, tasks: Tasks, topic: str) -> None:
    def limited(asked: Asked, _: int) -> Answer:
        return items(asked) if len(asked.body) < 300 else Answer(413)

    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    seen = serve(api, topic, limited)
    task = tasks(api.url, reporter, schema_ignore="true", errors_tolerance="all")
    write(task, records(topic, {"n": 1}, {"n": 2}, {"n": "x" * 400}, {"n": 4}))
    assert sorted(key for keys in seen for key in keys if len(keys) == 1) == ["k2"] or seen[-1]
    assert [record.original_offset for record, _ in reporter.reported] == [2]


def test_a_request_that_is_refused_for_one_document_is_divided(api: HttpApi, tasks: Tasks, topic: str) -> None:
    def strict(asked: Asked, _: int) -> Answer:
        why = '{"error":{"type":"action_request_validation_exception","reason":"no such thing"},"status":400}'
        return Answer(400, why) if b'"bad"' in asked.body else items(asked)

    reporter: ErrantRecords[Any] = ErrantRecords(tolerate=True)
    seen = serve(api, topic, strict)
    task = tasks(api.url, reporter, schema_ignore="true", errors_tolerance="all")
    write(task, records(topic, {"n": 1}, {"n": "bad"}, {"n": 3}))
    assert {key for keys in seen for key in keys} == {"k0", "k1", "k2"}
    ((refused, error),) = reporter.reported
    assert refused.original_offset == 1
    assert "no such thing" in str(error)


def test_a_request_that_is_refused_for_all_fails_the_task(api: HttpApi, tasks: Tasks, topic: str) -> None:
    why = (
        '{"error":{"type":"illegal_argument_exception","reason":"explicit index in bulk is not allowed"},"status":400}'
    )
    serve(api, topic, lambda *_: Answer(400, why))
    task = tasks(api.url, ErrantRecords(tolerate=True), schema_ignore="true", errors_tolerance="all")
    with pytest.raises(ConnectError, match="refuses bulk requests"):
        write(task, records(topic, {"n": 1}))


def test_a_cluster_that_accepts_nothing_for_too_long_fails_the_task(api: HttpApi, tasks: Tasks, topic: str) -> None:
    serve(api, topic, lambda *_: Answer(503, "busy"))
    task = tasks(api.url, schema_ignore="true", max_retries="100000", flush_timeout_ms="1000")
    with pytest.raises(ConnectError, match=r"not accepted 1 documents within flush.timeout.ms=1000.*503: busy"):
        write(task, records(topic, {"n": 1}))


def test_a_full_task_takes_no_more_until_there_is_room(api: HttpApi, tasks: Tasks, topic: str) -> None:
    open_again: list[bool] = []

    def slow(asked: Asked, _: int) -> Answer:
        return items(asked) if open_again else Answer(429, "full")

    seen = serve(api, topic, slow)
    props = {"batch_size": "2", "max_in_flight_requests": "1", "max_buffered_records": "4", "max_retries": "100000"}
    task = tasks(api.url, schema_ignore="true", **props)
    task.put(records(topic, *({"n": n} for n in range(4)))[0])
    task.context.stop()
    with pytest.raises(RetriableError):
        task.put(records(topic, {"n": 4}, keys=["k4"], first=4)[0])
    # Before the last commit of a task that stops, the cluster may go on not to answer.
    end = {TopicPartition(topic, 0): 4}
    assert task.pre_commit(end) == {TopicPartition(topic, 0): 0}
    open_again.append(True)
    wait_until("all is accepted", lambda: task.pre_commit(end) == end, 120)
    assert {key for keys in seen for key in keys} == {"k0", "k1", "k2", "k3"}
