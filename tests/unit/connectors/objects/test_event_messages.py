"""Messages about objects, as S3, SNS and EventBridge write them, and others."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from connect.errors import DataError
from connect.kits.objects.s3 import S3Account
from connect.kits.objects.sqs import account_of_queue
from connectors.objects.source.event_messages import ObjectEvent, events_of
from equipment.growth import assert_grows_evenly


def record(name: str, key: str) -> dict[str, Any]:
    return {"eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}}


def through_sns(message: object) -> dict[str, str]:
    return {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": json.dumps(message)}


BRIDGE: Final = {
    "version": "0",
    "detail-type": "Object Created",
    "source": "aws.s3",
    "detail": {"bucket": {"name": "b"}, "object": {"key": "a+b%20c", "size": 3}, "reason": "PutObject"},
}


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        ({"Records": [record("ObjectCreated:Put", "in/a+b%2Bc%C3%A9.txt")]}, ["in/a b+cé.txt"]),
        ({"Records": [record("s3:ObjectCreated:CompleteMultipartUpload", "x")]}, ["x"]),
        ({"Records": [record("ObjectCreated:Copy", "1"), record("ObjectRemoved:Delete", "2")]}, ["1"]),
        ({"Records": [record("ObjectRestore:Completed", "1"), record("ObjectRestore:Post", "2")]}, ["1"]),
        ({"Records": [record("ObjectTagging:Put", "1")]}, []),
        ({"Records": []}, []),
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"}, []),
        (BRIDGE, ["a+b%20c"]),
        ({**BRIDGE, "detail-type": "Object Deleted"}, []),
        (through_sns({"Records": [record("ObjectCreated:Put", "a")]}), ["a"]),
        (through_sns(BRIDGE), ["a+b%20c"]),
        (through_sns(through_sns(BRIDGE)), ["a+b%20c"]),
    ],
)
def test_messages_tell_of_objects(message: object, keys: list[str]) -> None:
    assert events_of(json.dumps(message)) == [ObjectEvent("b", key) for key in keys]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "hello",
        "[]",
        "1",
        "{}",
        '{"Records": 1}',
        '{"Records": [1]}',
        '{"Records": [{"eventName": 1}]}',
        '{"Records": [{"eventName": "ObjectCreated:Put", "s3": {}}]}',
        json.dumps({"Records": [record("ObjectCreated:Put", "%FF")]}),
        '{"Type": "Notification", "Message": 1}',
        '{"Type": "Notification", "Message": "x"}',
        '{"source": "aws.s3", "detail": {}, "detail-type": "Object Created"}',
        json.dumps({**BRIDGE, "detail": {"bucket": {"name": 1}, "object": {"key": 2}}}),
        json.dumps(through_sns(through_sns(through_sns(through_sns(BRIDGE))))),
        "[" * 100_000,
    ],
)
def test_other_messages_are_refused(body: str) -> None:
    with pytest.raises(DataError) as refused:
        events_of(body)
    assert len(str(refused.value)) < 400


def test_a_message_twice_as_long_takes_no_more_than_thrice_the_time() -> None:
    def message(count: int) -> str:
        return json.dumps({"Records": [record("ObjectCreated:Put", f"{'%2B' * 50}{n}") for n in range(count)]})

    assert_grows_evenly(events_of, message, 4_000)


@pytest.mark.parametrize(
    ("url", "region", "endpoint"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/q", "eu-west-1", "https://sqs.eu-west-1.amazonaws.com"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1", "https://sqs.cn-north-1.amazonaws.com.cn"),
        ("https://us-east-2.queue.amazonaws.com/1/q", "us-east-2", "https://us-east-2.queue.amazonaws.com"),
        (
            "https://vpce-1.sqs.us-east-1.vpce.amazonaws.com/1/q",
            "us-east-1",
            "https://vpce-1.sqs.us-east-1.vpce.amazonaws.com",
        ),
        ("http://localhost:9324/1/q", "eu-central-1", "http://localhost:9324"),
    ],
)
def test_the_url_of_a_queue_tells_its_service(url: str, region: str, endpoint: str) -> None:
    account = account_of_queue(S3Account("eu-central-1", "http://minio:9000"), url)
    assert (account.region, account.endpoint) == (region, endpoint)
