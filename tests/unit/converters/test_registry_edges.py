"""A registry that refuses, fails, is slow or is none: of each format what is retried, fails the task, is a record's."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from connect.converter import Converter
from connect.data import Constant, Schema, SourceRecord, TimestampType
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.converters import Converters
from connect.internals.chain.raw_records import ConsumedBatch
from connect.internals.chain.sink import SinkChain
from connect.internals.chain.source import SourceChain
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, Failure, Tolerance
from converters.avro import AvroConverter
from converters.json_schema import JsonSchemaConverter
from converters.protobuf import ProtobufConverter
from converters.registry import RegistryClient, RegistryConfig
from converters.simple_header import SimpleHeaderConverter
from equipment.fakes.http_api import Answer, HttpApi, serving_api
from equipment.fakes.schema_registry import MemoryRegistry, serving

FORMATS: dict[str, Any] = {"avro": AvroConverter, "json": JsonSchemaConverter, "protobuf": ProtobufConverter}
ROW = Schema.struct({"a": Schema.int64()}, name="n.Row")
OTHER = Schema.struct({"a": Schema.int64(), "b": Schema.string()}, name="n.Row")
UNKNOWN = b"\0\0\0\0\x63\0\x02"
ANSWERS = {
    "a wrong password": (401, '{"error_code":401,"message":"m"}', ConnectError),
    "no permission": (403, '{"error_code":40301,"message":"m"}', ConnectError),
    "an unknown subject": (404, '{"error_code":40402,"message":"m"}', DataError),
    "no registry": (404, "<html>", ConnectError),
    "an incompatible schema": (409, '{"error_code":409,"message":"m"}', DataError),
    "an invalid schema": (422, '{"error_code":42201,"message":"m"}', DataError),
    "a read-only registry": (422, '{"error_code":42205,"message":"m"}', ConnectError),
    "too many requests": (429, "", RetriableError),
    "a fault": (500, '{"error_code":50001,"message":"m"}', RetriableError),
    "a proxy without a registry": (502, "<html>", RetriableError),
    "the page of a proxy": (200, "<html><body>Sign in</body></html>", ConnectError),
    "the JSON of something else": (200, '{"status":"UP"}', ConnectError),
    "a list": (200, "[]", ConnectError),
}
Make = Callable[..., Converter[Any]]


@pytest.fixture
def memory() -> Iterator[MemoryRegistry]:
    with serving(MemoryRegistry(tells_versions=False)) as registry:
        yield registry


@pytest.fixture(params=FORMATS)
def make(request: pytest.FixtureRequest, memory: MemoryRegistry) -> Iterator[Make]:
    """Makes converters of one format, from keys with underscores for dots."""
    made: list[Converter[Any]] = []

    def configured(*, is_key: bool = False, **more: str) -> Converter[Any]:
        given = {"schema_registry_url": memory.url, "max_retries": "0", **more}
        props = {key.replace("_", "."): value for key, value in given.items()}
        made.append(FORMATS[request.param].configured(props, is_key=is_key))
        return made[-1]

    yield configured
    for each in made:
        each.close()


@pytest.fixture
def nobody() -> str:
    """The URL of a port where nobody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def kind_of(error: ConnectError) -> type[ConnectError]:
    return next(each for each in (DataError, RetriableError, ConnectError) if isinstance(error, each))


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
def test_what_answers_mean_to_a_converter(memory: MemoryRegistry, make: Make, answer: str, writes: bool) -> None:
    status, body, kind = ANSWERS[answer]
    # An unknown subject is no error where the latest schema is asked for, so the next answer is the same.
    memory.answers.extend([(status, body)] * 3)
    converter = make()
    with pytest.raises(ConnectError) as caught:
        if writes:
            converter.from_connect("t", ROW, {"a": 1})
        else:
            converter.to_connect("t", UNKNOWN)
    assert kind_of(caught.value) is kind
    memory.answers.clear()
    # Nothing of it is remembered.
    message = converter.from_connect("t", ROW, {"a": 1})
    assert converter.to_connect("t", message).value == {"a": 1}


def chains(converter: Converter[Any], failures: list[Failure]) -> tuple[SourceChain, SinkChain]:
    class Reporter:
        def report(self, failure: Failure) -> None:
            failures.append(failure)

        def flush(self) -> None:
            """Nothing waits."""

    made = Converters(converter, converter, SimpleHeaderConverter.configured({}))
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True), [Reporter()], wait=lambda seconds: True)
    steps: Any = Steps((), tolerance)
    return SourceChain(steps, made, tolerance), SinkChain(steps, made, tolerance)


def consumed(values: list[bytes | None]) -> ConsumedBatch:
    count = len(values)
    types = [TimestampType.CREATE_TIME] * count
    return ConsumedBatch(
        "t", Constant(None, count), values, Constant(0, count), range(count), [0] * count, types, [None] * count
    )


def test_a_lost_connection_is_no_dead_letter(make: Make, nobody: str) -> None:
    known, away = make(), make(schema_registry_url=nobody)
    message = known.from_connect("t", ROW, {"a": 1})
    failures: list[Failure] = []
    source, sink = chains(away, failures)
    record = SourceRecord("t", {"a": 1}, ROW, source_partition={}, source_offset={})
    with pytest.raises(ConnectError, match="does not answer") as caught:
        list(sink.process(consumed([message] * 3)))
    assert kind_of(caught.value) is ConnectError
    with pytest.raises(ConnectError, match="does not answer"):
        list(source.process([record]))
    assert failures == []


def test_a_schema_that_is_refused_is_a_dead_letter_of_its_record_alone(memory: MemoryRegistry, make: Make) -> None:
    failures: list[Failure] = []
    converter = make()
    message = converter.from_connect("t", ROW, {"a": 1})
    _, sink = chains(converter, failures)
    batches = sink.process(consumed([message, UNKNOWN, message]))
    assert [record.original_offset for batch in batches for record in batch] == [0, 2]
    assert [failure.raw.offset for failure in failures if failure.raw is not None] == [1]


def test_the_second_url_serves_where_the_first_is_dead(memory: MemoryRegistry, make: Make, nobody: str) -> None:
    converter = make(schema_registry_url=f"{nobody},{memory.url}")
    message = converter.from_connect("t", ROW, {"a": 1})
    assert make(schema_registry_url=f"{nobody},{memory.url}").to_connect("t", message).value == {"a": 1}


def test_a_slow_answer_is_asked_for_again(make: Make) -> None:
    with serving_api() as api:

        def late(_: Any) -> Answer:
            api.closing.wait()
            return Answer(500)

        api.route("/", late)
        converter = make(schema_registry_url=api.url, http_read_timeout_ms="100", max_retries="1", retries_wait_ms="1")
        with pytest.raises(RetriableError, match="does not answer"):
            converter.to_connect("t", UNKNOWN)
        assert len(api.asked) == 2
        api.closing.set()


STRATEGIES = {
    "TopicNameStrategy": ("t-key", "t-value"),
    "RecordNameStrategy": ("n.Row", "n.Row"),
    "TopicRecordNameStrategy": ("t-n.Row", "t-n.Row"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("is_key", [True, False], ids=["key", "value"])
def test_subjects_are_named_by_the_strategy(memory: MemoryRegistry, make: Make, strategy: str, is_key: bool) -> None:
    name = f"io.confluent.kafka.serializers.subject.{strategy}"
    named = {"key_subject_name_strategy": name, "value_subject_name_strategy": name, "normalize_schemas": "true"}
    message = make(is_key=is_key, **named).from_connect("t", ROW, {"a": 1})
    assert [*memory.subjects] == [STRATEGIES[strategy][not is_key]]
    assert memory.requests[-1].endswith("?normalize=true")
    fixed = {"auto_register_schemas": "false"}
    assert make(is_key=is_key, **named, **fixed).from_connect("t", ROW, {"a": 1}) == message
    latest = make(is_key=is_key, use_latest_version="true", **named, **fixed)
    assert latest.from_connect("t", ROW, {"a": 1}) == message
    assert latest.to_connect("t", message).value == {"a": 1}


def test_schemas_that_are_not_registered_are_an_error_of_the_record(memory: MemoryRegistry, make: Make) -> None:
    converter = make(auto_register_schemas="false")
    with pytest.raises(DataError, match=r"40401.*|auto\.register\.schemas=true"):
        converter.from_connect("t", ROW, {"a": 1})
    make().from_connect("t", OTHER, {"a": 1, "b": "x"})
    with pytest.raises(DataError, match=r"40403.*|auto\.register\.schemas=true"):
        converter.from_connect("t", ROW, {"a": 1})
    make().from_connect("t", ROW, {"a": 1})
    assert converter.from_connect("t", ROW, {"a": 1})


@pytest.mark.parametrize("chosen", ["id", "latest"])
def test_a_chosen_schema_must_be_able_to_hold_the_values(memory: MemoryRegistry, make: Make, chosen: str) -> None:
    make().from_connect("t", ROW, {"a": 1})
    given = {"use_schema_id": "1"} if chosen == "id" else {"use_latest_version": "true"}
    converter = make(auto_register_schemas="false", **given)
    assert converter.from_connect("t", ROW, {"a": 1})
    with pytest.raises(DataError):
        converter.from_connect("t", Schema.struct({"a": Schema.string()}, name="n.Row"), {"a": "x"})
    assert converter.from_connect("t", ROW, {"a": 2})


def test_a_chosen_id_that_is_unknown_is_named(make: Make) -> None:
    with pytest.raises(DataError, match="id 77"):
        make(auto_register_schemas="false", use_schema_id="77").from_connect("t", ROW, {"a": 1})


@pytest.mark.parametrize(("asked", "expected"), [("7", 7.0), ("90", 20.0), ("soon", 0.0)])
def test_the_pause_that_a_registry_asks_for_is_kept(asked: str, expected: float) -> None:
    """Up to ``retries.max.wait.ms``; the runtime is told the whole."""
    waits: list[float] = []
    with serving_api() as api:
        api.route("/", Answer(429, b"", {"Retry-After": asked}))
        config = RegistryConfig.parse({"schema.registry.url": api.url, "max.retries": "2", "retries.wait.ms": "0"})
        client = RegistryClient(config, wait=waits.append)
        with pytest.raises(RetriableError, match="HTTP status 429") as caught:
            client.by_id(1)
        client.close()
    assert waits == [expected] * 2
    assert caught.value.retry_after == (None if asked == "soon" else float(asked))


def test_no_pause_is_kept_where_another_url_may_answer(api: HttpApi, nobody: str) -> None:
    api.route("/", Answer(503, b"", {"Retry-After": "60"}))
    waits: list[float] = []
    props = {"schema.registry.url": f"{api.url},{nobody}", "max.retries": "1", "retries.wait.ms": "0"}
    client = RegistryClient(RegistryConfig.parse(props), wait=waits.append)
    with pytest.raises(RetriableError) as caught:
        client.by_id(1)
    client.close()
    assert waits == [0.0]
    assert caught.value.retry_after is None


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as found:
        yield found
