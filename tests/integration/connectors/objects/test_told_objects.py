"""Objects that a queue tells of: read once, and the messages deleted when their offsets are stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

import pytest

from connect.data import SourceRecord
from connect.errors import ConfigError, ConnectError
from connect.testing import ConnectorTestContext, SourceTaskTestContext, StoredOffsets
from connectors.objects.source import S3SourceConnector
from equipment.servers.s3 import S3Server, running_moto

pytestmark = pytest.mark.integration


class Queue:
    """A queue of moto, and the tasks that read what it tells of."""

    def __init__(self, s3: S3Server, *, tolerant: bool = False) -> None:
        self.s3, self.bucket, self._tolerant = s3, s3.make_bucket(), tolerant
        self.client = s3.client("sqs")
        # The name is that of the bucket, which is unique.
        self.url = self.client.create_queue(QueueName=self.bucket)["QueueUrl"]
        self.props = {**s3.props, "s3.bucket.name": self.bucket, "prefix": "in/", "topic": "t"}
        self.props |= {"sqs.url": self.url, "sqs.visibility.timeout.seconds": "600"}
        self.offsets = StoredOffsets()
        self.context = SourceTaskTestContext(self.offsets, tolerate_errors=tolerant)
        self.task: Any = None

    @property
    def arn(self) -> str:
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        return str(answer["Attributes"]["QueueArn"])

    def put(self, key: str, text: str, *, told: bool = True) -> None:
        self.s3.client().put_object(Bucket=self.bucket, Key=key, Body=text.encode())
        if told:
            self.tell(key)

    def tell(self, *keys: str, bucket: str | None = None) -> None:
        about = [{"bucket": {"name": bucket or self.bucket}, "object": {"key": quote_plus(key)}} for key in keys]
        self.send(json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": each} for each in about]}))

    def send(self, body: str) -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def start(self, **props: str) -> None:
        self.stop()
        self.context = SourceTaskTestContext(self.offsets, tolerate_errors=self._tolerant)
        config = S3SourceConnector.config_class.parse({**self.props, **props})
        made = S3SourceConnector(config, ConnectorTestContext(self.offsets)).task_configs(3)
        assert len(made) == 1
        self.task = S3SourceConnector.task_class(S3SourceConnector.task_class.config_class.parse(made[0]), self.context)
        self.task.start()

    def stop(self) -> None:
        if self.task is not None:
            self.task.stop()
        self.task = None

    def read(self) -> list[SourceRecord]:
        """Read until the source is at its end."""
        records: list[SourceRecord] = []
        while True:
            batch = self.task.poll()
            if batch is not None:
                records.extend(batch)
            elif self.task.drained():
                return records

    def commit(self, records: list[SourceRecord]) -> None:
        self.offsets.keep(records)
        for partition, offset in self.context.take_passed():
            self.offsets.put(partition, offset)
        self.task.commit()

    def left(self) -> tuple[int, int]:
        """How many messages there are that can be received, and that are hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return int(found[names[0]]), int(found[names[1]])


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    """The server that has queues, too."""
    with running_moto() as server:
        yield server


@pytest.fixture
def queue(moto: S3Server) -> Iterator[Queue]:
    made = Queue(moto)
    yield made
    made.stop()


@pytest.fixture
def tolerant(moto: S3Server) -> Iterator[Queue]:
    made = Queue(moto, tolerant=True)
    yield made
    made.stop()


def values(records: list[SourceRecord]) -> list[Any]:
    return [record.value for record in records]


def test_messages_are_deleted_when_the_offsets_of_their_objects_are_stored(queue: Queue) -> None:
    queue.put("in/old.txt", "old", told=False)
    queue.start()
    first = queue.read()
    assert values(first) == ["old"]
    queue.put("in/é + a.txt", "1\n2\n")
    queue.put("in/z.txt", "3\n")
    queue.tell("in/z.txt", "in/é + a.txt")
    second = queue.read()
    assert values(second) == ["3", "1", "2"]
    assert queue.left() == (0, 3)
    # The last record of one object is not on its topic yet.
    queue.commit([*first, *second[:2]])
    assert queue.left() == (0, 2)
    queue.commit(second)
    assert queue.left() == (0, 0)
    assert queue.read() == []


def test_messages_that_come_again_late_or_of_what_is_gone_read_nothing(queue: Queue) -> None:
    queue.start()
    queue.put("in/a.txt", "1\n")
    queue.tell("in/a.txt")
    first = queue.read()
    assert values(first) == ["1"]
    queue.commit(first)
    # What is read already, was removed, or is none of this source's; a kill before the message was deleted.
    queue.start()
    queue.tell("in/a.txt")
    queue.tell("in/gone.txt", "in/a.txt", "elsewhere/a.txt")
    queue.send(json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": queue.bucket}))
    queue.put("in/unknown", "no format")
    assert queue.read() == []
    assert queue.left() == (0, 0)
    queue.put("in/a.txt", "1\nanother\n", told=False)
    queue.tell("in/a.txt")
    again = queue.read()
    assert values(again) == ["1", "another"]
    queue.commit(again)
    assert queue.left() == (0, 0)


@pytest.mark.thorough
def test_a_killed_task_finds_by_its_list_what_messages_told(queue: Queue) -> None:
    queue.start()
    queue.put("in/a.txt", "1\n2\n")
    records = queue.read()
    queue.offsets.keep(records[:1])
    queue.start()
    rest = queue.read()
    assert values(rest) == ["2"]
    queue.commit(rest)
    # The message of the killed task is hidden still; a copy of it stands for its return.
    queue.tell("in/a.txt")
    assert queue.read() == []
    assert queue.left() == (0, 1)


@pytest.mark.thorough
def test_an_object_is_removed_and_its_message_deleted(queue: Queue) -> None:
    queue.start(**{"finished.action": "delete"})
    queue.put("in/a.txt", "1\n")
    records = queue.read()
    queue.commit([])
    assert queue.left() == (0, 1)
    queue.commit(records)
    assert queue.left() == (0, 0)
    assert "Contents" not in queue.s3.client().list_objects_v2(Bucket=queue.bucket)


@pytest.mark.thorough
def test_keys_and_values_wait_for_each_other(queue: Queue) -> None:
    folder = "topics/orders/partition=0/orders+0+0000000000"
    queue.start(
        **{
            "prefix": "",
            "format.class": "StringFormat",
            "store.kafka.keys": "true",
            "keys.format.class": "StringFormat",
            "sqs.visibility.timeout.seconds": "1",
        }
    )
    assert queue.read() == []
    queue.put(f"{folder}.txt", "v1\nv2\n")
    assert queue.read() == []
    queue.put(f"{folder}.keys.txt", "k1\nk2\n")
    records = queue.read()
    assert [(record.key, record.value) for record in records] == [("k1", "v1"), ("k2", "v2")]
    queue.commit(records)
    while queue.left() != (0, 0):
        assert queue.read() == []


def test_a_message_that_cannot_be_understood_fails_the_task_and_stays(queue: Queue) -> None:
    queue.start()
    queue.send("hello")
    with pytest.raises(ConnectError, match=r"Message .* cannot be used: .*hello\. Delete .* errors\.tolerance=all"):
        queue.read()
    assert queue.left() == (0, 1)


@pytest.mark.thorough
def test_such_messages_are_reported_and_deleted_if_errors_are_tolerated(tolerant: Queue) -> None:
    tolerant.start()
    tolerant.send("hello")
    tolerant.tell("in/a.txt", bucket="another")
    tolerant.put("in/bad.jsonl", "no json\n")
    tolerant.put("in/bad.avro", "no avro")
    assert tolerant.read() == []
    assert tolerant.left() == (0, 4)
    reported = tolerant.context.errant_record_reporter.reported
    assert len(reported) == 4
    assert sum("tells of the bucket another" in str(error) for _, error in reported) == 1
    tolerant.commit([])
    assert tolerant.left() == (0, 0)


@pytest.mark.thorough
def test_s3_itself_and_sns_tell_of_objects(queue: Queue) -> None:
    sns = queue.s3.client("sns")
    topic = sns.create_topic(Name=queue.bucket)["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    configuration = {
        "QueueConfigurations": [{"QueueArn": queue.arn, "Events": ["s3:ObjectCreated:*"]}],
        "TopicConfigurations": [{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}],
    }
    queue.s3.client().put_bucket_notification_configuration(
        Bucket=queue.bucket, NotificationConfiguration=configuration
    )
    queue.start()
    queue.read()
    queue.put("in/a.txt", "1\n2\n", told=False)
    queue.put("in/b.txt", "3\n", told=False)
    records = queue.read()
    assert values(records) == ["1", "2", "3"]
    queue.commit(records)
    assert queue.read() == []
    assert queue.left() == (0, 0)


@pytest.mark.thorough
def test_queues_that_cannot_be_used_are_said(queue: Queue) -> None:
    queue.start(**{"sqs.url": f"{queue.url}-missing"})
    with pytest.raises(ConnectError, match=r"There is no queue .*-missing: make it, or correct sqs\.url"):
        queue.read()
    with pytest.raises(ConfigError, match=r"sqs\.url"):
        S3SourceConnector.config_class.parse({**queue.props, "sqs.url": "queue"})
