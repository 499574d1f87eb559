"""The sinks with real stores: files that are sent whole and in parts, what objects get, and what is cleaned up."""

from __future__ import annotations

import base64
import email.utils
import gzip
import json
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import pytest

from connect.data import NO_HEADERS, Schema, SinkBatch, SinkRecord, TimestampType, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.kits.objects.s3 import S3Account, S3Objects
from connect.testing.sink_run import SinkTaskRun, TopicLog, run_sink
from connectors.objects import AzureBlobSinkConnector, GcsSinkConnector, S3SinkConnector
from connectors.objects.sinks import S3SinkTask
from equipment.fakes.http_api import Answer, serving_api
from equipment.servers.azurite import AzureServer
from equipment.servers.gcs import GcsServer
from equipment.servers.s3 import S3Server

TEXT: Final = "x" * 10_000
COUNT: Final = 1300
"""Records of 10 kB: two parts of 5 MiB, and a rest."""


def records(count: int = COUNT, topic: str = "t", value: Any = None) -> list[SinkRecord]:
    return [
        SinkRecord(
            topic, value or {"id": number, "text": TEXT}, None, None, None, 0, 1_700_000_000_000, NO_HEADERS, number,
            TimestampType.CREATE_TIME, topic, 0, number,
        )
        for number in range(count)
    ]  # fmt: skip


@pytest.fixture
def bucket(s3: S3Server) -> Mapping[str, str]:
    """The configuration of a sink to a bucket of its own."""
    return {
        **s3.props,
        "name": "sink",
        "s3.bucket.name": s3.make_bucket(),
        "s3.part.size": str(5 << 20),
        "format.class": "JsonFormat",
        "flush.size": str(COUNT),
        "retry.backoff.ms": "10",
    }


def objects(s3: S3Server, bucket: Mapping[str, str]) -> dict[str, bytes]:
    client, name = s3.client(), bucket["s3.bucket.name"]
    found = client.list_objects_v2(Bucket=name).get("Contents", ())
    return {item["Key"]: client.get_object(Bucket=name, Key=item["Key"])["Body"].read() for item in found}


def test_an_object_of_several_parts(s3: S3Server, bucket: Mapping[str, str]) -> None:
    run_sink(S3SinkConnector, bucket, records(), batch_size=100)
    ((name, data),) = objects(s3, bucket).items()
    assert name == "topics/t/partition=0/t+0+0000000000.json"
    assert [json.loads(line)["id"] for line in data.splitlines()] == list(range(COUNT))
    head = s3.client().head_object(Bucket=bucket["s3.bucket.name"], Key=name)
    assert head["ETag"].endswith('-3"'), "three parts"


def test_tags_encryption_and_storage_class(s3: S3Server, bucket: Mapping[str, str]) -> None:
    more = {
        "flush.size": "2",
        "s3.object.tagging": "true",
        "s3.object.tagging.key.value.pairs": "team:data",
        "s3.ssea.name": "AES256",
        "s3.acl.canned": "bucket-owner-full-control",
    }
    run_sink(S3SinkConnector, {**bucket, **more}, records(2, value={"a": 1}))
    client, at = s3.client(), {"Bucket": bucket["s3.bucket.name"], "Key": "topics/t/partition=0/t+0+0000000000.json"}
    tags = {tag["Key"]: tag["Value"] for tag in client.get_object_tagging(**at)["TagSet"]}
    assert tags == {"team": "data", "startOffset": "0", "endOffset": "1", "recordCount": "2"}
    if s3.product == "versitygw":
        pytest.skip("versitygw accepts encryption, and does not encrypt")
    assert client.head_object(**at)["ServerSideEncryption"] == "AES256"


def test_incomplete_uploads_of_a_killed_task_are_aborted(s3: S3Server, bucket: Mapping[str, str]) -> None:
    """Those of its own partitions, and no others."""
    client, name = s3.client(), bucket["s3.bucket.name"]
    ours, others = "topics/t/partition=0/t+0+0000000700.json", "topics/t/partition=9/t+9+0000000000.json"
    for key in (ours, others):
        client.create_multipart_upload(Bucket=name, Key=key)
    run_sink(S3SinkConnector, {**bucket, "flush.size": "1"}, records(1, value={"a": 1}))
    left = [upload["Key"] for upload in client.list_multipart_uploads(Bucket=name)["Uploads"]]
    assert left == [others]


def test_an_upload_that_someone_aborts_is_made_again(s3: S3Server, bucket: Mapping[str, str]) -> None:
    log = TopicLog(records())
    run = SinkTaskRun(S3SinkTask, {**bucket, "topics": "t"}, log)
    run.start(log.partitions)
    run.put(1200)
    client, name = s3.client(), bucket["s3.bucket.name"]
    for upload in client.list_multipart_uploads(Bucket=name)["Uploads"]:
        client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    with pytest.raises(RetriableError, match=r"aborted by someone else|failed \(500\)"):
        for _ in range(1000):
            run.task.put(SinkBatch.from_records(records()[1200:])[0])
            run.task.put(SinkBatch.empty("t"))
            run.context.wait(0.01)
    assert run.context.rewinds == {TopicPartition("t", 0): 0}
    run._rewind()
    run.context.wait(0.02)
    while run.put(500):
        run.commit()
    run.stop()
    assert log.committed == {TopicPartition("t", 0): COUNT}
    ((_, data),) = objects(s3, bucket).items()
    assert len(data.splitlines()) == COUNT


def test_a_bucket_that_is_not_there_is_told(bucket: Mapping[str, str]) -> None:
    changes = {"s3.bucket.name": "no-such-bucket-here", "flush.size": "1"}
    with pytest.raises(ConnectError, match="There is no bucket no-such-bucket-here: make it"):
        run_sink(S3SinkConnector, {**bucket, **changes}, records(1, value={"a": 1}))


@pytest.mark.parametrize("by", ["key", "web identity"])
def test_a_role_is_assumed(s3: S3Server, bucket: Mapping[str, str], tmp_path: Path, by: str) -> None:
    if s3.product == "versitygw":
        pytest.skip("versitygw has no roles")
    role = {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/writer", "aws.sts.config.endpoint": s3.endpoint}
    if by == "web identity":
        (tmp_path / "token").write_text("a.token.of-it\n")
        role["aws.sts.web.identity.token.file"] = str(tmp_path / "token")
    run_sink(S3SinkConnector, {**bucket, **role, "flush.size": "1"}, records(1, value={"a": 1}))
    assert list(objects(s3, bucket)) == ["topics/t/partition=0/t+0+0000000000.json"]


def test_a_service_without_conditional_writes_is_told() -> None:
    missing = b'<?xml version="1.0"?><Error><Code>NotImplemented</Code><Message>A header.</Message></Error>'
    with serving_api() as api:
        api.route("/", Answer(501, missing, {"Content-Type": "application/xml"}))
        account = S3Account("us-east-1", api.url, key="k", secret="s", tries=1)
        with pytest.raises(ConnectError, match=r"use flush\.size alone"):
            S3Objects(account, "bucket", "").create("cut", b"")


def test_a_clock_that_is_wrong_is_told() -> None:
    """With the code of S3, and where a request has no answer but its status."""
    skewed = b'<?xml version="1.0"?><Error><Code>RequestTimeTooSkewed</Code><Message>Large.</Message></Error>'
    date = email.utils.formatdate(time.time() + 1800, usegmt=True)
    with serving_api() as api:
        api.route("/", Answer(403, skewed, {"Content-Type": "application/xml", "Date": date}))
        store = S3Objects(S3Account("us-east-1", api.url, key="k", secret="s", tries=1), "bucket", "")
        for request in (lambda: store.put("x", b""), lambda: store.size("x")):
            with pytest.raises(ConnectError, match=r"30 minutes behind that of the service.*by NTP"):
                request()


def test_a_store_that_throttles_is_given_its_pause() -> None:
    slow = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your rate.</Message></Error>'
    with serving_api() as api:
        api.route("/", Answer(503, slow, {"Retry-After": "7", "Content-Type": "application/xml"}))
        props = {
            "name": "sink",
            "topics": "t",
            "s3.bucket.name": "bucket",
            "s3.endpoint": api.url,
            "aws.access.key.id": "k",
            "aws.secret.access.key": "s",
            "s3.part.retries": "0",
            "format.class": "JsonFormat",
            "flush.size": "1",
        }
        log = TopicLog(records(1, value={"a": 1}))
        run = SinkTaskRun(S3SinkTask, props, log)
        run.start(log.partitions)
        with pytest.raises(RetriableError) as slowed:
            run.task.put(SinkBatch.from_records(records(1, value={"a": 1}))[0])
        assert slowed.value.retry_after == 7
        with pytest.raises(RetriableError) as again:
            run.task.put(SinkBatch.from_records(records(1, value={"a": 1}))[0])
        assert 6 < (again.value.retry_after or 0) <= 7, "until then, the store is left alone"
        run.task.stop()


def test_google_cloud_storage(gcs: GcsServer) -> None:
    name = gcs.make_bucket()
    props = {"name": "s", **gcs.props, "gcs.bucket.name": name, "gcs.part.size": str(5 << 20), "flush.size": str(COUNT)}
    run_sink(GcsSinkConnector, {**props, "format.class": "JsonFormat"}, records(), batch_size=100)
    parquet = {**props, "format.class": "ParquetFormat", "flush.size": "10", "topics.dir": "p"}
    run_sink(GcsSinkConnector, parquet, records(10, value={"a": 1}))
    bucket = gcs.client().bucket(name)
    lines = bucket.blob("topics/t/partition=0/t+0+0000000000.json").download_as_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(COUNT))
    table = pq.read_table(BytesIO(bucket.blob("p/t/partition=0/t+0+0000000000.snappy.parquet").download_as_bytes()))
    assert table.to_pylist() == [{"a": 1}] * 10


@pytest.mark.thorough
def test_azure_blob_storage(azure: AzureServer) -> None:
    container = azure.make_container()
    props = {
        "name": "s",
        **azure.props,
        "azblob.account.name": azure.account,
        "azblob.container.name": container,
        "azblob.block.size": str(5 << 20),
        "flush.size": str(COUNT),
        "format.class": "JsonFormat",
    }
    run_sink(AzureBlobSinkConnector, props, records(), batch_size=100)
    small = {**props, "flush.size": "10", "topics.dir": "small", "rotate.schedule.interval.ms": "100000"}
    run_sink(AzureBlobSinkConnector, small, records(10, value={"a": 1}))
    client = azure.client(container)
    data = client.get_blob_client("topics/t/partition=0/t+0+0000000000.json").download_blob().readall()
    assert [json.loads(line)["id"] for line in data.splitlines()] == list(range(COUNT))
    data = client.get_blob_client("small/t/partition=0/t+0+0000000000.json").download_blob().readall()
    assert data == b'{"a":1}\n' * 10


ORDER: Final = Schema.struct({"f1": Schema.string()}, name="myrecord")


@pytest.mark.parametrize("connector_class", ["io.confluent.connect.s3.S3SinkConnector", "S3SinkConnector"])
def test_confluent_s_quick_start(s3: S3Server, connector_class: str) -> None:
    """The files of the tutorial: three records each, as Avro."""
    bucket = s3.make_bucket()
    props = {
        "name": "s3-sink",
        "connector.class": connector_class,
        "tasks.max": "1",
        "topics": "s3_topic",
        "s3.region": "eu-central-1",
        "s3.bucket.name": bucket,
        "s3.part.size": "5242880",
        "flush.size": "3",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "schema.compatibility": "NONE",
        "store.url": s3.endpoint,
        "aws.access.key.id": s3.props["aws.access.key.id"],
        "aws.secret.access.key": s3.props["aws.secret.access.key"],
    }
    given = [
        item.replace(value={"f1": f"value{number + 1}"}, value_schema=ORDER)
        for number, item in enumerate(records(9, "s3_topic", {"f1": ""}))
    ]
    run_sink(S3SinkConnector, props, given)
    found = objects(s3, {"s3.bucket.name": bucket})
    assert {name: [row["f1"] for row in _avro(data)] for name, data in found.items()} == {
        f"topics/s3_topic/partition=0/s3_topic+0+{first:010d}.avro": [f"value{first + n + 1}" for n in range(3)]
        for first in (0, 3, 6)
    }


def test_aiven_s_quick_start(s3: S3Server) -> None:
    bucket = s3.make_bucket()
    props = {
        "name": "aiven",
        "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
        "topics": "t",
        "aws.access.key.id": s3.props["aws.access.key.id"],
        "aws.secret.access.key": s3.props["aws.secret.access.key"],
        "aws.s3.bucket.name": bucket,
        "aws.s3.region": "eu-central-1",
        "aws.s3.endpoint": s3.endpoint,
        "aws.s3.prefix": "some-prefix/",
        "format.output.type": "jsonl",
        "format.output.fields": "key,value,offset,timestamp",
        "file.compression.type": "gzip",
        "file.max.records": "2",
    }
    run_sink(S3SinkConnector, props, records(3, value={"a": 1}), batch_size=3)
    found = objects(s3, {"s3.bucket.name": bucket})
    line = b'{"key":null,"value":{"a":1},"offset":%d,"timestamp":"2023-11-14T22:13:20Z"}\n'
    assert {name: gzip.decompress(data) for name, data in found.items() if not name.startswith("_")} == {
        "some-prefix/t-0-0.gz": line % 0 + line % 1,
        "some-prefix/t-0-2.gz": line % 2,
    }


PRODUCED: Final = [
    SinkRecord(
        "t", f"value{number}", Schema.string(), f"k{number}", Schema.string(), 0, 1_700_000_000_000, NO_HEADERS, number,
        TimestampType.CREATE_TIME, "t", 0, number,
    )
    for number in range(3)
]  # fmt: skip


def test_confluent_s_quick_start_for_google(gcs: GcsServer) -> None:
    name = gcs.make_bucket()
    props = {
        "name": "gcs-sink",
        "connector.class": "io.confluent.connect.gcs.GcsSinkConnector",
        "tasks.max": "1",
        "topics": "gcs_topic",
        "gcs.bucket.name": name,
        "gcs.part.size": "5242880",
        "flush.size": "3",
        "storage.class": "io.confluent.connect.gcs.storage.GcsStorage",
        "format.class": "io.confluent.connect.gcs.format.avro.AvroFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "schema.compatibility": "NONE",
        "confluent.topic.bootstrap.servers": "broker:9092",
        "confluent.topic.replication.factor": "1",
    }
    run_sink(GcsSinkConnector, {**props, **gcs.props}, _ordered("gcs_topic"))
    blobs = {blob.name: blob.download_as_bytes() for blob in gcs.client().bucket(name).list_blobs()}
    assert {path: [row["f1"] for row in _avro(data)] for path, data in blobs.items()} == _ordered_files("gcs_topic")


def test_confluent_s_quick_start_for_azure(azure: AzureServer) -> None:
    container = azure.make_container()
    props = {
        "name": "azure-blob-sink",
        "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
        "tasks.max": "1",
        "topics": "blob_topic",
        "flush.size": "3",
        "azblob.account.name": azure.account,
        "azblob.container.name": container,
        "format.class": "io.confluent.connect.azure.blob.format.avro.AvroFormat",
        "confluent.license": "",
        "confluent.topic.bootstrap.servers": "broker:9092",
        "confluent.topic.replication.factor": "1",
    }
    run_sink(AzureBlobSinkConnector, {**props, **azure.props}, _ordered("blob_topic"))
    blobs = _blobs(azure, container)
    assert {path: [row["f1"] for row in _avro(data)] for path, data in blobs.items()} == _ordered_files("blob_topic")


def test_aiven_s_quick_start_for_google(gcs: GcsServer) -> None:
    name = gcs.make_bucket()
    props = {
        "name": "my-gcs-connector",
        "connector.class": "io.aiven.kafka.connect.gcs.GcsSinkConnector",
        "tasks.max": "1",
        "topics": "t",
        "gcs.bucket.name": name,
        "file.name.prefix": "my-custom-prefix/",
        "file.compression.type": "gzip",
        "format.output.type": "jsonl",
        "format.output.fields": "value,offset",
    }
    run_sink(GcsSinkConnector, {**props, **gcs.props}, PRODUCED, batch_size=3)
    blobs = {blob.name: blob.download_as_bytes() for blob in gcs.client().bucket(name).list_blobs()}
    assert {path: gzip.decompress(data) for path, data in blobs.items() if not path.startswith("_sluice")} == {
        "my-custom-prefix/t-0-0.gz": b"".join(b'{"value":"value%d","offset":%d}\n' % (n, n) for n in range(3))
    }


def test_aiven_s_quick_start_for_azure(azure: AzureServer) -> None:
    container = azure.make_container()
    key, endpoint = azure.props["azblob.account.key"], azure.props["azblob.endpoint"]
    props = {
        "name": "azure_blob_sink",
        "connector.class": "io.aiven.kafka.connect.azure.sink.AzureBlobSinkConnector",
        "tasks.max": "1",
        "topics": "t",
        "azure.storage.connection.string": f"DefaultEndpointsProtocol=http;AccountName={azure.account};"
        f"AccountKey={key};BlobEndpoint={endpoint};",
        "azure.storage.container.name": container,
        "file.name.prefix": "connect-azure-blob-sink/test-run/",
        "file.compression.type": "gzip",
        "format.output.fields": "key,value,offset,timestamp",
        "reload.action": "restart",
    }
    run_sink(AzureBlobSinkConnector, props, PRODUCED, batch_size=3)
    found = {path: data for path, data in _blobs(azure, container).items() if not path.startswith("_sluice")}
    # Keys and values are in base64, as Aiven's sinks write CSV unless told otherwise.
    lines = [f"{_base64(f'k{n}')},{_base64(f'value{n}')},{n},1700000000000\n" for n in range(3)]
    assert {path: gzip.decompress(data).decode() for path, data in found.items()} == {
        "connect-azure-blob-sink/test-run/t-0-0.gz": "".join(lines)
    }


def _ordered(topic: str) -> list[SinkRecord]:
    """The ten messages of Confluent's quick starts."""
    return [
        item.replace(value={"f1": f"value{number + 1}"}, value_schema=ORDER)
        for number, item in enumerate(records(10, topic, {"f1": ""}))
    ]


def _ordered_files(topic: str) -> dict[str, list[str]]:
    """The files that are complete by then, of three messages each."""
    return {
        f"topics/{topic}/partition=0/{topic}+0+{first:010d}.avro": [f"value{first + n + 1}" for n in range(3)]
        for first in (0, 3, 6)
    }


def _blobs(azure: AzureServer, container: str) -> dict[str, bytes]:
    client = azure.client(container)
    return {name: client.get_blob_client(name).download_blob().readall() for name in client.list_blob_names()}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _avro(data: bytes) -> list[dict[str, Any]]:
    rows: Any = fastavro.reader(BytesIO(data))
    return list(rows)
