"""Sources of objects: what the sinks wrote is restored exactly, and any objects are read, whenever they come."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from azure.storage.blob import ContentSettings

from connect.data import Header, Headers, Schema, SourceRecord
from connect.errors import ConfigError, ConnectError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.gcs import GoogleObjects
from connect.testing import ConnectorTestContext, StoredOffsets, TopicLog, run_sink
from connectors import objects
from connectors.objects.source import S3SourceConnector
from equipment.servers.s3 import S3Server
from equipment.stores.object_sources import CONNECTORS, Source, read, records_of
from equipment.stores.object_targets import ObjectTarget

pytestmark = pytest.mark.integration

ROW = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="Row")
ROWS = [{"id": number, "name": None if number % 3 else f"n{number}"} for number in range(11)]
KEYS = [f"k{number}" for number in range(11)]


THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    "form", ["Avro", "ByteArray", *(pytest.param(form, marks=THOROUGH) for form in ("Parquet", "Json"))]
)
def test_what_a_storage_sink_wrote_is_restored(target: ObjectTarget, sources: list[Source], form: str) -> None:
    is_bytes = form == "ByteArray"
    values: list[Any] = [f"v{at}".encode() for at in range(11)] if is_bytes else list(ROWS)
    values[4] = None
    schema = Schema.bytes() if is_bytes else ROW
    records = records_of(values, KEYS, schema, Schema.string())
    companions = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
    companions |= {"keys.format.class": "AvroFormat", "headers.format.class": "JsonFormat"}
    props = {**target.props, "format.class": f"{form}Format", "flush.size": "2", "topics": "orders", **companions}
    props |= {"behavior.on.null.values": "write", "rotate.on.offset.commit": "true"}
    sink: Any = getattr(objects, target.connector)
    run_sink(sink, props, TopicLog(records), batch_size=3)
    reads = {
        key: value for key, value in props.items() if not key.startswith(("flush", "rotate", "behavior", "topics"))
    }
    source = Source(CONNECTORS[target.kind], {**reads, "max.poll.records": "3"})
    sources.append(source)
    task = source.start()
    found = read(task)
    assert task.drained()

    def told(record: Any) -> tuple[Any, ...]:
        headers = [(header.key, header.value) for header in record.headers]
        return record.topic, record.partition, record.key, record.value, headers

    for partition in (0, 1):
        # Records without a value are in a folder of their own, so that their place among the others is not told.
        for is_null in (False, True):
            wanted = [told(each) for each in records if each.partition == partition and (each.value is None) is is_null]
            assert [
                told(each) for each in found if each.partition == partition and (each.value is None) is is_null
            ] == wanted
    with_values = [record for record in found if record.value is not None]
    if form in ("Avro", "Parquet"):
        assert {record.value_schema.name for record in with_values if record.value_schema} == {"Row"}
    assert {record.key_schema.type for record in found if record.key_schema} == {Schema.string().type}
    # Whatever is committed, the rest follows, each with its own key and headers.
    for done in range(2, len(found), 5):
        other = Source(CONNECTORS[target.kind], {**reads, "max.poll.records": "3"})
        sources.append(other)
        other.offsets.keep(found[:done])
        rest = read(other.start())
        assert [told(each) for each in rest] == [told(each) for each in found[done:]]


TEXTS: Final = (
    "",
    " a",
    "a ",
    "\ufeffa",
    "a\u2028b\x85c\x0b\x0cd",
    "a\x00b",
    "\t",
    '"',
    '"a"',
    "\\n",
    "\u00e4\U0001f600",
    "null",
)


@pytest.mark.parametrize("compression", ["none", pytest.param("gzip", marks=THOROUGH)])
def test_texts_are_restored_byte_for_byte(target: ObjectTarget, sources: list[Source], compression: str) -> None:
    """Each kind of text may begin a file, or end it."""
    values: list[Any] = [text for text in TEXTS for _ in range(2)]
    keys = [None if at % 5 == 1 else f"k{at}\n" for at in range(len(values))]
    records = records_of(values, keys, Schema.string(), Schema.string(optional=True))
    companions = {"store.kafka.keys": "true", "store.kafka.headers": "true"}
    companions |= {"keys.format.class": "AvroFormat", "headers.format.class": "AvroFormat"}
    props = {**target.props, **companions, "format.class": "StringFormat", "topics": "orders"}
    for size in ("1", "12"):
        written = {"flush.size": size, "topics.dir": size, "name": size, "file.compression.type": compression}
        run_sink(getattr(objects, target.connector), props | written, TopicLog(records), batch_size=5)
        source = Source(CONNECTORS[target.kind], {**props, "topics.dir": size})
        sources.append(source)
        found = read(source.start())

        def told(record: Any) -> tuple[Any, ...]:
            return record.partition, record.key, record.value, [(each.key, each.value) for each in record.headers]

        for partition in (0, 1):
            wanted = [told(each) for each in records if each.partition == partition]
            assert [told(each) for each in found if each.partition == partition] == wanted


@pytest.mark.parametrize("name", ["Csv", "Tsv"])
def test_what_rows_of_text_cannot_hold_is_not_restored_as_something_else(name: str) -> None:
    """A number and its text are the same in them."""
    props = {"s3.bucket.name": "b", "s3.region": "eu-central-1", "format.class": f"{name}Format"}
    with pytest.raises(ConfigError, match="cannot be restored exactly"):
        CONNECTORS["s3"].task_class.config_class.parse(props)


@pytest.mark.parametrize(
    "kind", ["jsonl", *(pytest.param(kind, marks=THOROUGH) for kind in ("json", "avro", "parquet"))]
)
def test_envelopes_are_restored_byte_for_byte(target: ObjectTarget, sources: list[Source], kind: str) -> None:
    values: list[Any] = [bytes([at, 0, 255, 10]) for at in range(11)]
    keys: list[Any] = [None if at % 4 == 1 else bytes([255, at]) for at in range(11)]
    if kind in ("json", "jsonl"):
        values[4] = None
    records = records_of(values, keys, Schema.bytes(), Schema.bytes(optional=True))
    if kind in ("json", "jsonl"):
        raw = Headers([Header("b", b"\xff\n", Schema.bytes()), Header("b", None, Schema.bytes(optional=True))])
        records = [record.replace(headers=raw) for record in records]
    if kind in ("avro", "parquet"):
        # Their map of headers has one of each name.
        records = [record.replace(headers=Headers(list(record.headers)[:1])) for record in records]
    props = {**target.props, "format.output.type": kind, "topics": "orders"}
    props |= {"format.output.fields": "key,value,offset,timestamp,headers", "file.max.records": "3"}
    run_sink(getattr(objects, target.connector), props, TopicLog(records), batch_size=3)
    reads = {key: value for key, value in props.items() if key in target.props}
    more = {"file.name.template": "{{topic}}-{{partition}}-{{start_offset}}", "envelope": "true"}
    if kind in ("json", "jsonl"):
        more["envelope.base64"] = "key,value,headers"
    more["format"] = kind
    source = Source(CONNECTORS[target.kind], {**reads, **more})
    sources.append(source)
    found = read(source.start())

    def told(record: Any) -> tuple[Any, ...]:
        headers = [(header.key, header.value) for header in record.headers]
        return record.topic, record.partition, record.timestamp, record.key, record.value, headers

    assert sorted(map(told, found), key=lambda each: each[2]) == list(map(told, records))


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.make_bucket()


def put(s3: S3Server, bucket: str, key: str, data: bytes | str) -> None:
    s3.client().put_object(Bucket=bucket, Key=key, Body=data.encode() if isinstance(data, str) else data)


def avro(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    schema = {"type": "record", "name": "row", "fields": [{"name": "n", "type": "long"}]}
    fastavro.writer(out, schema, rows)
    return out.getvalue()


def test_any_objects_are_read_by_their_names(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    table = io.BytesIO()
    pq.write_table(pa.table({"n": [4, 5]}), table)
    put(s3, bucket, "in/a.csv", "n,when\n1,2024-01-01\n")
    put(s3, bucket, "in/b.jsonl.gz", gzip.compress(b'{"n": 2}\n'))
    put(s3, bucket, "in/c.avro", avro([{"n": 3}]))
    put(s3, bucket, "in/d.parquet", table.getvalue())
    put(s3, bucket, "in/e.txt", "6\n7")
    put(s3, bucket, "in/empty.txt", "")
    put(s3, bucket, "in/unknown", "x")
    put(s3, bucket, "other/a.txt", "never")
    props = {**s3.props, "s3.bucket.name": bucket, "prefix": "in/", "topic": "t", "infer.rows": "10"}
    source = Source(S3SourceConnector, props)
    sources.append(source)
    task = source.start()
    records = read(task)
    numbers = [record.value["n"] if isinstance(record.value, dict) else int(record.value) for record in records]
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert records[0].value_schema is not None
    assert list(records[0].value_schema.field_names) == ["n", "when"]
    assert records[0].source_partition == {"bucket": bucket, "objectKey": "in/a.csv"}
    assert task.remaining() == {"bytes": 0, "objects": 0}
    assert task.total()["objects"] > 0
    assert task.drained()


@pytest.mark.parametrize("by", ["key", pytest.param("web identity", marks=THOROUGH)])
def test_a_role_is_assumed(s3: S3Server, bucket: str, sources: list[Source], tmp_path: Path, by: str) -> None:
    if s3.product == "versitygw":
        pytest.skip("versitygw has no roles")
    put(s3, bucket, "in/a.txt", "one\n")
    role = {"aws.sts.role.arn": "arn:aws:iam::123456789012:role/reader", "aws.sts.config.endpoint": s3.endpoint}
    if by == "web identity":
        (tmp_path / "token").write_text("a.token.of-it\n")
        role["aws.sts.web.identity.token.file"] = str(tmp_path / "token")
    source = Source(S3SourceConnector, {**s3.props, "s3.bucket.name": bucket, "topic": "t", "format": "text", **role})
    sources.append(source)
    task = source.start()
    assert [record.value for record in read(task)] == ["one"]
    account = task.config.s3_account
    assert account.role is not None
    assert account.role.arn.endswith("reader")


def test_late_keys_replaced_objects_and_restarts(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    for key in ("m.txt", "z.txt"):
        put(s3, bucket, key, f"{key}-1\n{key}-2\n")
    source = Source(S3SourceConnector, {**s3.props, "s3.bucket.name": bucket, "topic": "t"})
    sources.append(source)
    task = source.start()
    first = read(task)
    assert [record.value for record in first] == ["m.txt-1", "m.txt-2", "z.txt-1", "z.txt-2"]
    # Keys that sort before those that were read, before anything is committed.
    put(s3, bucket, "a.txt", "late")
    late = read(task)
    assert [record.value for record in late] == ["late"]
    assert read(task) == []
    source.commit(task, [*first[:3], *late])
    again = source.start()
    assert [record.value for record in read(again)] == ["z.txt-2"]
    source.commit(again, first)
    assert read(source.start()) == []
    put(s3, bucket, "m.txt", "m.txt-1\nother\n")
    replaced = read(source.start())
    assert [record.value for record in replaced] == ["m.txt-1", "other"]


def test_an_object_that_is_removed_before_it_is_read_is_not_waited_for(
    s3: S3Server, bucket: str, sources: list[Source]
) -> None:
    for key in ("a.txt", "b.txt", "c.txt"):
        put(s3, bucket, key, f"{key}\n")
    source = Source(S3SourceConnector, {**s3.props, "s3.bucket.name": bucket, "topic": "t"})
    sources.append(source)
    task = source.start()
    records = list(task.poll() or ())
    assert [record.value for record in records] == ["a.txt"]
    s3.client().delete_object(Bucket=bucket, Key="b.txt")
    records += read(task)
    assert [record.value for record in records] == ["a.txt", "c.txt"]
    assert read(task) == [], "another scan"
    assert task.drained()
    assert task.remaining() == {"bytes": 0, "objects": 0}


def test_an_object_of_bad_rows_alone_is_not_read_again(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    put(s3, bucket, "a.jsonl", "no json\n")
    source = Source(S3SourceConnector, {**s3.props, "s3.bucket.name": bucket, "topic": "t"}, tolerate_errors=True)
    sources.append(source)
    task = source.start()
    assert read(task) == []
    assert len(source.context.errant_record_reporter.reported) == 1
    source.commit(task, [])
    again = source.start()
    assert read(again) == []
    assert source.context.errant_record_reporter.reported == []


@pytest.mark.parametrize("action", ["move", "delete"])
def test_objects_are_finished_once_they_are_committed(
    s3: S3Server, bucket: str, sources: list[Source], action: str
) -> None:
    put(s3, bucket, "in/a.txt", "1\n2\n")
    props = {**s3.props, "s3.bucket.name": bucket, "topic": "t", "prefix": "in/", "finished.action": action}
    source = Source(S3SourceConnector, {**props, "finished.prefix": "done/"})
    sources.append(source)
    task = source.start()
    records = read(task)
    source.commit(task, records[:1])
    assert keys(s3, bucket) == ["in/a.txt"]
    # A kill after the commit, before the object is finished.
    source.offsets.keep(records)
    again = source.start()
    assert read(again) == []
    again.commit()
    assert keys(s3, bucket) == (["done/in/a.txt"] if action == "move" else [])


def test_a_finished_object_takes_no_other_ones_place(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    """An object that comes again has the same name and size, and other content."""
    props = {**s3.props, "s3.bucket.name": bucket, "topic": "t", "prefix": "in/", "finished.action": "move"}
    source = Source(S3SourceConnector, {**props, "finished.prefix": "done/"})
    sources.append(source)
    for content in ("1\n", "2\n", "2\n"):
        put(s3, bucket, "in/a.txt", content)
        task = source.start()
        source.commit(task, read(task))
        assert read(task) == []
    found = {key: s3.client().get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys(s3, bucket)}
    # The third is what the second would be after a kill between its copy and its removal.
    assert found == {"done/in/a.txt": b"1\n", "done/in/a.txt.1": b"2\n"}


def test_objects_with_an_encoding_are_read_as_they_are_stored(target: ObjectTarget, sources: list[Source]) -> None:
    """Clients would decompress them on the way, and then no range of them is where it should be."""
    content = gzip.compress(b"one\ntwo\n" * 1000)
    match target.store:
        case GoogleObjects() as store:
            blob = store._blob("in/a.txt.gz")
            blob.content_encoding = "gzip"
            blob.upload_from_string(content)
        case AzureBlobs() as store:
            settings = ContentSettings(content_encoding="gzip")
            store._blob("in/a.txt.gz").upload_blob(content, content_settings=settings)
        case store:
            put_encoded = store._client.put_object
            put_encoded(Bucket=store._bucket, Key="in/a.txt.gz", Body=content, ContentEncoding="gzip")
    props = {key: value for key, value in target.props.items() if "size" not in key}
    source = Source(CONNECTORS[target.kind], {**props, "prefix": "in/", "topic": "t"})
    sources.append(source)
    assert [record.value for record in read(source.start())] == ["one", "two"] * 1000
    assert target.store.read("in/a.txt.gz") == content


def keys(s3: S3Server, bucket: str) -> list[str]:
    return [item["Key"] for item in s3.client().list_objects_v2(Bucket=bucket).get("Contents", ())]


def test_aivens_configuration_and_offsets(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    put(s3, bucket, "logs/events-00001-17.bin", b"x" * 5000)
    put(s3, bucket, "logs/other.bin", b"never")
    props = {
        "aws.access.key.id": s3.props["aws.access.key.id"],
        "aws.secret.access.key": s3.props["aws.secret.access.key"],
        "aws.s3.endpoint": s3.endpoint,
        "aws.s3.region": s3.props["s3.region"],
        "aws.s3.bucket.name": bucket,
        "aws.s3.prefix": "logs/",
        "file.name.template": "{{topic}}-{{partition}}-{{start_offset}}",
        "distribution.type": "partition",
    }
    source = Source(S3SourceConnector, props)
    sources.append(source)
    records = read(source.start())
    assert [(record.topic, record.partition, len(record.value)) for record in records] == [
        ("events", 1, 4096),
        ("events", 1, 904),
    ]
    assert [record.source_offset["recordCount"] for record in records] == [1, 2]
    assert {(record.key, record.key_schema) for record in records} == {
        (b"logs/events-00001-17.bin", Schema.bytes()),
    }
    assert list(map(len, source.shares(3))) == [0, 2, 0]
    # An offset of Java's source.
    taken = Source(S3SourceConnector, props)
    sources.append(taken)
    taken.offsets.put({"bucket": bucket, "objectKey": "logs/events-00001-17.bin"}, {"recordCount": 1})
    assert [len(record.value) for record in read(taken.start())] == [904]
    lines = Source(
        S3SourceConnector,
        {
            **props,
            "input.format": "jsonl",
            "file.name.template": ".*json",
            "topic": "t",
            "distribution.type": "object_hash",
        },
    )
    sources.append(lines)
    put(s3, bucket, "logs/a.json", json.dumps({"a": 1}) + "\n")
    assert [record.value for record in read(lines.start())] == [{"a": 1}]


def test_tasks_share_objects(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    for number in range(20):
        put(s3, bucket, f"{number:02}.txt", f"{number}\n")
    source = Source(S3SourceConnector, {**s3.props, "s3.bucket.name": bucket, "topic": "t"})
    sources.append(source)
    shares = [[int(record.value) for record in share] for share in source.shares(3)]
    assert sorted(number for share in shares for number in share) == list(range(20))
    assert all(shares)


def test_splits_are_read_as_one_process_reads_them(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    for number in range(12):
        put(s3, bucket, f"in/{number:02}.txt", f"{number}-a\n{number}-b\n" * (1 + number % 3))
    props = {**s3.props, "s3.bucket.name": bucket, "topic": "t", "prefix": "in/"}
    alone = Source(S3SourceConnector, props)
    split = Source(S3SourceConnector, props)
    sources += [alone, split]
    whole = read(alone.start())
    config = S3SourceConnector.config_class.parse(props)
    connector = S3SourceConnector(config, ConnectorTestContext(split.offsets))
    connector.start()

    def told(record: SourceRecord) -> tuple[Any, ...]:
        return record.source_partition["objectKey"], record.source_offset["position"], record.value

    first = connector.splits(3)
    put(s3, bucket, "in/late.txt", "late\n")
    s3.client().delete_object(Bucket=bucket, Key="in/05.txt")
    shares = [split.of(each) for each in first]
    assert len(shares) == 3
    assert all(shares)
    found = sorted(told(record) for share in shares for record in share)
    assert found == [told(record) for record in whole if record.source_partition["objectKey"] != "in/05.txt"]
    # A split that was interrupted goes on from its offsets; what came later is in the next.
    for share in shares[1:]:
        split.offsets.keep(share)
    split.offsets.keep(shares[0][:1])
    again = [record for each in connector.splits(3) for record in split.of(each)]
    assert sorted(map(told, again)) == sorted([*map(told, shares[0][1:]), ("in/late.txt", 5, "late")])
    split.offsets.keep(again)
    assert connector.splits(3) == []


def test_splits_keep_the_order_of_a_topic_partition(s3: S3Server, bucket: str, sources: list[Source]) -> None:
    for partition in range(3):
        for offset in range(0, 30, 10):
            stem = f"topics/orders/partition={partition}/orders+{partition}+{offset:010}"
            put(s3, bucket, f"{stem}.txt", "".join(f"{partition}-{offset + at}\n" for at in range(10)))
            put(s3, bucket, f"{stem}.keys.txt", "".join(f"k{offset + at}\n" for at in range(10)))
    props = {**s3.props, "s3.bucket.name": bucket, "format.class": "StringFormat"}
    props |= {"keys.format.class": "StringFormat", "store.kafka.keys": "true"}
    source = Source(S3SourceConnector, props)
    sources.append(source)
    config = S3SourceConnector.config_class.parse(props)
    connector = S3SourceConnector(config, ConnectorTestContext(source.offsets))
    connector.start()
    shares = [source.of(split) for split in connector.splits(2)]
    assert len(shares) == 2
    for partition in range(3):
        (share,) = (share for share in shares if any(record.partition == partition for record in share))
        mine = [(record.key, record.value) for record in share if record.partition == partition]
        assert mine == [(f"k{at}", f"{partition}-{at}") for at in range(30)]
    # Values that are gone when their split is read, while their keys are still there.
    gone = "topics/orders/partition=2/orders+2+0000000010.txt"
    splits = connector.splits(1)
    s3.client().delete_object(Bucket=bucket, Key=gone)
    assert len(source.of(splits[0])) == 80


def test_objects_told_by_a_queue_have_no_splits(s3: S3Server, bucket: str) -> None:
    props = {**s3.props, "s3.bucket.name": bucket, "topic": "t", "sqs.url": "http://127.0.0.1:1/1/q"}
    connector = S3SourceConnector(S3SourceConnector.config_class.parse(props), ConnectorTestContext(StoredOffsets()))
    connector.start()
    with pytest.raises(ConnectError, match=r"remove sqs\.url"):
        connector.splits(2)


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({}, "Name the topic"),
        ({"topic": "t", "s3.bucket.name": None}, "bucket"),
        ({"topic": "t", "file.name.template": "{{when}}"}, "it has the variable when"),
        ({"topic": "t", "file.name.template": "("}, "file.name.template"),
        ({"topic": "t", "distribution.type": "partition"}, "use object_hash"),
        ({"topic": "t", "input.format": "orc"}, "Use bytes, avro, jsonl or parquet"),
        ({"topic": "t", "file.compression.type": "zstd"}, "Use none or gzip"),
        ({"topic": "t", "behavior.on.error": "ignore"}, "Use fail"),
        ({"topic": "t", "mode": "RESTORE_BACKUP"}, "needs the format"),
        ({"format.class": "x.XmlFormat"}, "Use AvroFormat"),
        ({"topic": "t", "finished.action": "move"}, "name a prefix"),
        ({"topic": "t", "finished.action": "move", "finished.prefix": "done/"}, "would be read again"),
        ({"topic": "t", "aws.sts.web.identity.token.file": "x"}, "belongs to a role"),
    ],
)
def test_what_is_not_supported_is_refused(props: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        S3SourceConnector.config_class.parse({"s3.bucket.name": "b", **props})
    assert message in str(refused.value)
