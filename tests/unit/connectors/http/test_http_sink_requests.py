"""The requests of the sink, their order, and its options."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.data import NO_HEADERS, Headers, Schema, SinkRecord, decimal_schema, timestamp_schema
from connect.kits.http.messages import Request
from connectors.http.lanes import Lanes
from connectors.http.sink_config import HttpSinkConfig
from connectors.http.sink_requests import Job, Refused, SinkRequests

URL = "https://api.example/in"


def config_of(**props: str) -> HttpSinkConfig:
    given = {key.replace("_", "."): value for key, value in props.items()}
    return HttpSinkConfig.parse({} if "http.api.url" in given else {"http.url": URL} | given)


def record(
    value: Any,
    schema: Schema | None = None,
    *,
    key: Any = None,
    offset: int = 0,
    partition: int = 0,
    headers: Headers = NO_HEADERS,
) -> SinkRecord:
    made = SinkRecord("t", value, schema, key, None, partition, 1704164645123, headers, offset)
    return made.replace(original_topic="t", original_partition=partition, original_offset=offset)


def jobs(config: HttpSinkConfig, *records: SinkRecord) -> list[Job | Refused]:
    return list(SinkRequests(config).jobs(records))


def requests(config: HttpSinkConfig, *records: SinkRecord) -> list[Request]:
    return [job.request for job in jobs(config, *records) if isinstance(job, Job)]


@pytest.mark.parametrize(
    ("value", "schema", "body", "kind"),
    [
        ("text", None, b"text", None),
        (b"\x00\xff", None, b"\x00\xff", None),
        ({"a": [1, None, "\u00e9"]}, None, '{"a":[1,null,"\u00e9"]}'.encode(), "application/json"),
        (7, None, b"7", "application/json"),
        (
            {"at": dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "d": Decimal("1.50")},
            Schema.struct({"at": timestamp_schema(), "d": decimal_schema(2)}),
            b'{"at":1704153600000,"d":"AJY="}',
            "application/json",
        ),
    ],
)
def test_values_are_bodies(value: Any, schema: Schema | None, body: bytes, kind: str | None) -> None:
    (made,) = requests(config_of(), record(value, schema))
    assert (made.method, made.url, made.body, made.headers.get("Content-Type")) == ("POST", URL, body, kind)


def test_decimals_may_be_numbers_and_texts_json() -> None:
    config = config_of(decimal_format="numeric", request_body_format="JSON")
    big = Decimal("123456789012345678901234567890.10")
    assert requests(config, record({"d": big}))[0].body == b'{"d":123456789012345678901234567890.10}'
    assert requests(config, record('say "a"'))[0].body == b'"say \\"a\\""'


def test_everything_of_a_record_may_be_in_a_request() -> None:
    config = HttpSinkConfig.parse(
        {
            "http.url": f"{URL}/${{topic}}/${{key.id}}?at=${{timestamp}}&q=${{name}}",
            "request.method": "put",
            "http.headers.additional": "X-Place:${topic}-${partition}-${offset},X-Op: ${headers.op!'none'}",
            "http.request.body": '{"name": "${value.name}", "all": ${value}}',
        }
    )
    given = record({"name": 'a"b/c'}, key={"id": "x y"}, offset=5, headers=NO_HEADERS.add("op", "u"))
    (made,) = requests(config, given)
    assert made.method == "PUT"
    assert made.url == f"{URL}/t/x%20y?at=1704164645123&q=a%22b%2Fc"
    assert made.headers == {"X-Place": "t-0-5", "X-Op": "u", "Content-Type": "application/json"}
    assert json.loads(made.body or b"") == {"name": 'a"b/c', "all": {"name": 'a"b/c'}}


def test_a_record_that_cannot_be_sent_is_refused_alone() -> None:
    config = HttpSinkConfig.parse({"http.url": f"{URL}/${{key}}"})
    found = jobs(config, record("a", key="../x"), record("b", key=".."), record("c"), record(float("nan"), key="k"))
    assert [type(each) for each in found] == [Job, Refused, Refused, Refused]
    assert isinstance(found[0], Job)
    assert found[0].request.url == f"{URL}/..%2Fx"


@pytest.mark.parametrize(
    ("behavior", "expected"), [("fail", False), ("ignore", True), ("log", True), ("delete", "DELETE")]
)
def test_a_record_without_a_value(behavior: str, expected: object) -> None:
    config = HttpSinkConfig.parse({"http.url": f"{URL}/${{key}}", "behavior.on.null.values": behavior})
    (found,) = jobs(config, record(None, key="k"))
    if isinstance(found, Refused):
        assert found.tolerated is expected
    else:
        assert (found.request.method, found.request.body) == (expected, None)


def test_batches_have_one_partition_and_one_target() -> None:
    records = [record(f"{n}", offset=n, partition=n % 2, key="ab"[n // 3 % 2]) for n in range(8)]
    lines = config_of(batching_enabled="true", batch_max_size="3")
    assert [made.body for made in requests(lines, *records)] == [b"0\n2\n4\n", b"6\n", b"1\n3\n5\n", b"7\n"]
    framed = config_of(batching_enabled="true", batch_prefix="<\\n", batch_suffix=">", batch_separator="\\t")
    assert requests(framed, *records[:3])[0].body == b"<\n0\t2>"
    by_key = HttpSinkConfig.parse(
        {"http.api.url": f"{URL}/${{key}}", "batch.max.size": "9", "batch.json.as.array": "true"}
    )
    assert [(made.url[-1], made.body) for made in requests(by_key, *records)] == [
        ("a", b"[0,2]"),
        ("b", b"[4]"),
        ("a", b"[6]"),
        ("a", b"[1]"),
        ("b", b"[3,5]"),
        ("a", b"[7]"),
    ]
    small = config_of(batching_enabled="true", batch_max_bytes="3")
    assert [made.body for made in requests(small, *records[:5:2])] == [b"0\n2\n", b"4\n"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=30), st.integers(1, 4), st.data())
def test_lanes_keep_order_and_share_the_rest(given_keys: list[tuple[int, int]], most: int, data: st.DataObject) -> None:
    """Each job is done once, one after the other in a lane, however often it is tried again."""
    records = [record("v", key=key, offset=offset) for offset, (key, _) in enumerate(given_keys)]
    retries = {offset: tries for offset, (_, tries) in enumerate(given_keys)}
    lanes, now, done = Lanes(), 0.0, list[SinkRecord]()
    for job in jobs(config_of(), *records):
        assert isinstance(job, Job)
        lanes.add(job)
    under_way: list[Job] = []
    while not lanes.is_empty:
        while len(under_way) < most and (job := lanes.next(now)) is not None:
            assert all(other.lane != job.lane for other in under_way)
            under_way.append(job)
        if not under_way:
            assert lanes.due is not None
            assert lanes.due > now
            now = lanes.due
            continue
        job = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
        offset = job.records[0].original_offset
        if retries[offset]:
            retries[offset] -= 1
            lanes.again(job, now + 1)
        else:
            lanes.done(job)
            done += job.records
    assert sorted(each.original_offset for each in done) == list(range(len(records)))
    for key in range(4):
        own = [each.original_offset for each in done if each.key == key]
        assert own == sorted(own)


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({}, "http.url"),
        ({"http.url": URL, "http.api.url": URL}, "http.api.url"),
        ({"http.url": "http://${topic}/"}, "http.url"),
        ({"http.url": "http://me:hush@h/"}, "http.url"),
        ({"http.url": URL, "http.headers.additional": "no colon, hush"}, "http.headers.additional"),
        ({"http.url": URL, "http.headers.additional": "A:1,a:2"}, "http.headers.additional"),
        ({"http.url": URL, "http.authorization.type": "static"}, "http.headers.authorization"),
        ({"http.url": URL, "http.authorization.type": "oauth2"}, "oauth2.client.id"),
        ({"http.url": URL, "auth.type": "BASIC"}, "http.auth.user"),
        ({"http.url": URL, "regex.patterns": "a~b"}, "regex.patterns"),
        ({"http.url": URL, "request.method": "GET"}, "request.method"),
        ({"http.url": URL, "request.method": "DELETE", "batching.enabled": "true"}, "batching.enabled"),
        ({"http.url": URL, "http.request.body": "${"}, "http.request.body"),
        ({"http.url": URL, "https.ssl.truststore.location": "/nowhere"}, "https.ssl.truststore.location"),
    ],
)
def test_mistakes_of_the_sink_are_told_at_their_keys(props: dict[str, str], key: str) -> None:
    told = {value.name: value.errors for value in HttpSinkConfig.validate(props) if value.errors}
    assert key in told
    assert "hush" not in str(told)


def test_the_key_of_the_url_chooses_the_defaults() -> None:
    plain, other = HttpSinkConfig.parse({"http.url": URL}), HttpSinkConfig.parse({"http.api.url": URL})
    assert (plain.most_retries, plain.on_null, plain.batch_size, plain.frame) == (1, "fail", 500, ("", "\n", "\n"))
    assert (other.most_retries, other.on_null, other.batch_size, other.frame) == (10, "ignore", 1, ("", ",", ""))
    assert plain.backoff.constant
    assert not other.backoff.constant
    assert not plain.is_batching
    assert not other.is_batching
    assert HttpSinkConfig.parse({"http.api.url": URL, "batch.max.size": "2"}).is_batching


def test_each_connector_s_credentials_are_taken() -> None:
    basic = HttpSinkConfig.parse(
        {"http.api.url": URL, "auth.type": "basic", "connection.user": "u", "connection.password": "hush"}
    )
    assert (basic.auth_type, basic.basic_user, basic.basic_password.value) == ("BASIC", "u", "hush")
    static = HttpSinkConfig.parse(
        {"http.url": URL, "http.authorization.type": "static", "http.headers.authorization": "hush"}
    )
    assert static.configured_headers == {"Authorization": "hush"}
    proxied = HttpSinkConfig.parse(
        {"http.url": URL, "http.proxy.host": "p", "http.proxy.port": "8080", "http.proxy.user": "a:b"}
    )
    assert proxied.proxy is not None
    assert proxied.proxy.value == "http://a%3Ab:@p:8080"
