"""A table of cases: records in, names of files and their contents out, as Confluent's and Aiven's rules have them."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from connect.data import Headers, Schema, SinkRecord, TimestampType, date_schema, decimal_schema, timestamp_schema
from connect.errors import ConnectError
from connect.testing.contexts import ErrantRecords
from connect.testing.sink_run import TopicLog, run_sink
from connectors.objects import FolderSinkConnector

SECOND: Final = 1000
HOUR: Final = 3600 * SECOND
BEGIN: Final = 1_700_000_000_000
"""2023-11-14T22:13:20Z"""
OLD: Final = Schema.struct({"id": Schema.int32()}, name="a", version=1)
A: Final = Schema.struct({"id": Schema.int32(), "name": Schema.string(optional=True)}, name="a", version=1)
NEW: Final = Schema.struct({"id": Schema.int32(), "name": Schema.string()}, name="a", version=2)
B: Final = Schema.struct({"id": Schema.int64(), "name": Schema.string(optional=True)}, name="a", version=2)


def record(
    offset: int,
    value: Any = None,
    *,
    topic: str = "t",
    partition: int = 0,
    time: int = BEGIN,
    schema: Schema | None = None,
    key: Any = None,
    headers: Headers | None = None,
    renamed: str | None = None,
) -> SinkRecord:
    key_schema = Schema.string(optional=True) if isinstance(key, str | None) else None
    made = headers or Headers()
    return SinkRecord(
        renamed or topic, value, schema, key, key_schema, partition, time, made, offset, TimestampType.CREATE_TIME,
        topic, partition, offset,
    )  # fmt: skip


def maps(count: int, **more: Any) -> list[SinkRecord]:
    return [record(offset, {"id": offset}, time=BEGIN + offset * HOUR, **more) for offset in range(count)]


def written(
    folder: Path,
    props: Mapping[str, str],
    records: Sequence[SinkRecord],
    errant: ErrantRecords[SinkRecord] | None = None,
) -> dict[str, bytes]:
    """The files that a sink writes, by their names below the store."""
    given = {"name": "sink", "store.url": str(folder), **props}
    run_sink(FolderSinkConnector, given, TopicLog(records), batch_size=4, errant_records=errant)
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(files) if "_sluice" not in file.parts}


def ids(files: Mapping[str, bytes]) -> dict[str, list[int]]:
    return {name: [json.loads(line)["id"] for line in data.splitlines()] for name, data in files.items()}


JSON: Final = {"format.class": "io.confluent.connect.s3.format.json.JsonFormat"}
HOURLY: Final = {
    **JSON,
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "timestamp.extractor": "Record",
    "timezone": "UTC",
    "locale": "en-US",
}


@pytest.mark.parametrize(
    ("props", "records", "expected"),
    [
        pytest.param(
            {**JSON, "flush.size": "3"},
            maps(7),
            {
                "topics/t/partition=0/t+0+0000000000.json": [0, 1, 2],
                "topics/t/partition=0/t+0+0000000003.json": [3, 4, 5],
            },
            id="the records of flush.size, by the first offset",
        ),
        pytest.param(
            {
                **JSON,
                "flush.size": "1",
                "topics.dir": "lake/raw",
                "file.delim": "-",
                "filename.offset.zero.pad.width": "3",
            },
            [record(1234, {"id": 1}, partition=7)],
            {"lake/raw/t/partition=7/t-7-1234.json": [1]},
            id="folders, delimiters, digits",
        ),
        pytest.param(
            {**HOURLY, "flush.size": "4"},
            [record(offset, {"id": offset}, time=BEGIN + offset // 2 * HOUR) for offset in range(8)],
            {
                "topics/t/year=2023/month=11/day=14/hour=22/t+0+0000000000.json": [0, 1],
                "topics/t/year=2023/month=11/day=14/hour=23/t+0+0000000002.json": [2, 3],
                "topics/t/year=2023/month=11/day=15/hour=00/t+0+0000000004.json": [4, 5],
                "topics/t/year=2023/month=11/day=15/hour=01/t+0+0000000006.json": [6, 7],
            },
            id="flush.size counts all folders, which end together",
        ),
        pytest.param(
            {**HOURLY, "flush.size": "100", "rotate.interval.ms": str(HOUR)},
            [record(offset, {"id": offset}, time=BEGIN + offset * HOUR // 2) for offset in range(5)],
            {
                "topics/t/year=2023/month=11/day=14/hour=22/t+0+0000000000.json": [0, 1],
                "topics/t/year=2023/month=11/day=14/hour=23/t+0+0000000002.json": [2, 3],
            },
            id="rotate.interval.ms by the records' own times",
        ),
        pytest.param(
            {
                **HOURLY,
                "partitioner.class": "TimeBasedPartitioner",
                "path.format": "'dt'=YYYY-MM-dd/'h'=HH",
                "partition.duration.ms": str(6 * HOUR),
                "timezone": "America/New_York",
                "timestamp.extractor": "RecordField",
                "timestamp.field": "meta.at",
                "flush.size": "2",
            },
            [
                record(0, {"id": 0, "meta": {"at": "2024-03-10T12:30:00Z"}}),
                record(1, {"id": 1, "meta": {"at": 1_710_000_000_000}}),
            ],
            {
                "topics/t/dt=2024-03-09/h=06/t+0+0000000001.json": [1],
                "topics/t/dt=2024-03-10/h=06/t+0+0000000000.json": [0],
            },
            id="a nested field, a time zone and a duration",
        ),
        pytest.param(
            {**JSON, "flush.size": "5", "partitioner.class": "FieldPartitioner", "partition.field.name": "c,in.x"},
            [
                record(0, {"id": 0, "c": "a/b", "in": {"x": True}}),
                record(1, {"id": 1, "c": None, "in": {"x": 7}}),
                record(2, {"id": 2, "c": "..", "in": {"x": "50%"}}),
                record(3, {"id": 3, "c": "a/b", "in": {"x": True}}),
                record(4, {"id": 4, "c": "é=ü", "in": {"x": ""}}),
            ],
            {
                "topics/t/c=%2E%2E/in.x=50%25/t+0+0000000002.json": [2],
                "topics/t/c=a%2Fb/in.x=true/t+0+0000000000.json": [0, 3],
                "topics/t/c=null/in.x=7/t+0+0000000001.json": [1],
                "topics/t/c=é=ü/in.x=/t+0+0000000004.json": [4],
            },
            id="fields, whose values cannot divide a path",
        ),
        pytest.param(
            {**JSON, "flush.size": "3"},
            [record(n, {"id": n, "name": None}, schema=B if n in (2, 3, 4) else A) for n in range(5)],
            {
                "topics/t/partition=0/t+0+0000000000.json": [0, 1],
                "topics/t/partition=0/t+0+0000000002.json": [2, 3, 4],
            },
            id="a change of schema begins a file",
        ),
        pytest.param(
            {**JSON, "flush.size": "3"},
            [record(n, {"id": n, "name": None}, schema=B if n % 2 else A) for n in range(6)],
            {
                "topics/t/partition=0/t+0+0000000000.json": [0, 2, 4],
                "topics/t/partition=0/t+0+0000000001.json": [1, 3],
            },
            id="schemas in turn have two files, not six",
        ),
        pytest.param(
            {**JSON, "flush.size": "3", "schema.compatibility": "BACKWARD"},
            [record(n, {"id": n, "name": None}, schema=B if n in (2, 4) else A) for n in range(6)],
            {
                "topics/t/partition=0/t+0+0000000000.json": [0, 1],
                "topics/t/partition=0/t+0+0000000002.json": [2, 3, 4],
            },
            id="BACKWARD: a newer version ends the file, an older one is projected",
        ),
        pytest.param(
            {**JSON, "flush.size": "3", "schema.compatibility": "FORWARD"},
            [
                record(n, {"id": n}, schema=OLD) if n == 2 else record(n, {"id": n, "name": "x"}, schema=NEW)
                for n in range(5)
            ],
            {
                "topics/t/partition=0/t+0+0000000000.json": [0, 1],
                "topics/t/partition=0/t+0+0000000002.json": [2, 3, 4],
            },
            id="FORWARD: an older version ends the file, a newer one is projected",
        ),
        pytest.param(
            {**JSON, "flush.size": "2", "s3.schema.partition.affix.type": "PREFIX"},
            [record(n, {"id": n, "name": None}, schema=A) for n in range(2)],
            {"topics/t/schema_name=a/partition=0/t+0+0000000000.json": [0, 1]},
            id="the schema's name before the folder",
        ),
        pytest.param(
            {**JSON, "flush.size": "2", "s3.schema.partition.affix.type": "SUFFIX"},
            maps(2),
            {"topics/t/partition=0/schema_name=null/t+0+0000000000.json": [0, 1]},
            id="no schema behind the folder",
        ),
        pytest.param(
            {**JSON, "flush.size": "100", "partitioner.max.open.files": "2", "partitioner.class": "FieldPartitioner"}
            | {"partition.field.name": "id"},
            [record(n, {"id": n % 3}) for n in range(6)],
            {
                "topics/t/id=0/t+0+0000000000.json": [0],
                "topics/t/id=0/t+0+0000000003.json": [0],
                "topics/t/id=1/t+0+0000000001.json": [1],
                "topics/t/id=2/t+0+0000000002.json": [2],
            },
            id="a third folder ends the files of two",
        ),
        pytest.param(
            {**JSON, "flush.size": "1"},
            [record(5, {"id": 5}, topic="a", renamed="c"), record(5, {"id": 6}, topic="b", renamed="c")],
            {"topics/c/partition=0/a+0+0000000005.json": [5], "topics/c/partition=0/b+0+0000000005.json": [6]},
            id="topics that a transformation brings together keep their own names in files",
        ),
        pytest.param(
            {"format.output.type": "jsonl", "format.output.envelope": "false", "file.name.prefix": "p/"},
            [*maps(2), record(0, {"id": 9}, partition=1)],
            {"p/t-0-0": [0, 1], "p/t-1-0": [9]},
            id="Aiven: files end with the commit of offsets",
        ),
        pytest.param(
            {
                "format.output.type": "jsonl",
                "format.output.envelope": "false",
                "file.max.records": "2",
                "file.name.template": "{{ timestamp:unit=yyyy }}{{timestamp:unit=MM}}/{{topic}}-"
                "{{partition:padding=true}}-{{start_offset:padding=true}}.x",
                "file.name.timestamp.source": "EVENT",
            },
            maps(4),
            {
                "202311/t-0000000000-00000000000000000000.x": [0, 1],
                "202311/t-0000000000-00000000000000000002.x": [2, 3],
            },
            id="Aiven: a template, times of records, digits",
        ),
        pytest.param(
            {"format.output.type": "jsonl", "format.output.envelope": "false", "file.name.template": "k-{{key}}"},
            [record(n, {"id": n}, key=("x", "y/z", None)[n % 3]) for n in range(8)],
            {"k-null": [5], "k-x": [6], "k-y%2Fz": [7]},
            id="Aiven: a file for each key has its last record",
        ),
    ],
)
def test_names_of_files(
    tmp_path: Path, props: Mapping[str, str], records: Sequence[SinkRecord], expected: Mapping[str, Sequence[int]]
) -> None:
    assert ids(written(tmp_path, props, records)) == expected
    # What is written again has the same names and contents.
    assert ids(written(tmp_path, props, records)) == expected


TYPED: Final = Schema.struct(
    {
        "i": Schema.int8(),
        "f": Schema.float64(),
        "b": Schema.bytes(),
        "d": decimal_schema(2),
        "day": date_schema(),
        "at": timestamp_schema(optional=True),
        "list": Schema.array(Schema.string()),
        "map": Schema.map(Schema.int32(), Schema.boolean()),
        "in": Schema.struct({"x": Schema.string(optional=True)}),
    },
    name="typed",
)


def typed() -> SinkRecord:
    value = {
        "i": -5,
        "f": float("nan"),
        "b": b"\x00\xff",
        "d": Decimal("-1.50"),
        "day": dt.date(1970, 1, 11),
        "at": dt.datetime(1970, 1, 1, 0, 0, 1, 5000, dt.UTC),
        "list": ["é", '"'],
        "map": {7: True},
        "in": {"x": None},
    }
    return record(0, value, schema=TYPED)


@pytest.mark.parametrize(
    ("props", "records", "expected"),
    [
        pytest.param(
            {**JSON, "flush.size": "1"},
            [typed()],
            {
                "topics/t/partition=0/t+0+0000000000.json": '{"i":-5,"f":"NaN","b":"AP8=","d":"/2o=","day":10,'
                '"at":1005,"list":["é","\\""],"map":[[7,true]],"in":{"x":null}}\n'.encode()
            },
            id="JSON as Java's converter writes it",
        ),
        pytest.param(
            {**JSON, "flush.size": "4", "json.decimal.format": "numeric"},
            [record(0, "text"), record(1, 5), record(2, [1, None, 2.5]), record(3, {"big": 1 << 70, "b": b"\x01"})],
            {
                "topics/t/partition=0/t+0+0000000000.json": b'"text"\n5\n[1,null,2.5]\n'
                b'{"big":1180591620717411303424,"b":"AQ=="}\n'
            },
            id="JSON without a schema",
        ),
        pytest.param(
            {
                "format.class": "ByteArrayFormat",
                "flush.size": "2",
                "format.bytearray.separator": "\\n--",
                "s3.bucket": "x",
            },
            [record(0, b"\xff1"), record(1, b"2")],
            {"topics/t/partition=0/t+0+0000000000.bin": b"\xff1\n--2\n--"},
            id="bytes, each with the separator behind it",
        ),
        pytest.param(
            {"format.class": "CsvFormat", "flush.size": "3"},
            [record(0, {"a": "x,y", "b": None}), record(1, {"a": "", "b": 1}), record(2, {"a": 'q"', "b": [1]})],
            {"topics/t/partition=0/t+0+0000000000.csv": b'a,b\n"x,y",\n"",1\n"q""",[1]\n'},
            id="CSV",
        ),
        pytest.param(
            {**JSON, "flush.size": "2", "store.kafka.keys": "true", "store.kafka.headers": "true"}
            | {"keys.format.class": "JsonFormat", "headers.format.class": "JsonFormat"},
            [
                record(0, {"id": 0}, key="k", headers=Headers().add("h", 5, Schema.int32())),
                record(1, {"id": 1}, key=None),
            ],
            {
                "topics/t/partition=0/t+0+0000000000.headers.json": b'{"headers":[{"key":"h","value":"5"}]}\n'
                b'{"headers":[]}\n',
                "topics/t/partition=0/t+0+0000000000.json": b'{"id":0}\n{"id":1}\n',
                "topics/t/partition=0/t+0+0000000000.keys.json": b'"k"\nnull\n',
            },
            id="keys and headers beside the values",
        ),
        pytest.param(
            {**JSON, "flush.size": "2", "behavior.on.null.values": "write", "store.kafka.keys": "true"}
            | {"keys.format.class": "JsonFormat"},
            [record(0, {"id": 0}, key="a"), record(1, None, key="b"), record(2, {"id": 2}, key="c")],
            {
                "topics/t/partition=0/t+0+0000000000.json": b'{"id":0}\n{"id":2}\n',
                "topics/t/partition=0/t+0+0000000000.keys.json": b'"a"\n"c"\n',
                "topics/t/tombstone/t+0+0000000001.keys.json": b'"b"\n',
            },
            id="tombstones are their keys, in a folder of their own",
        ),
        pytest.param(
            {**JSON, "flush.size": "2", "behavior.on.null.values": "ignore"},
            [record(0, {"id": 0}), record(1, None), record(2, {"id": 2})],
            {"topics/t/partition=0/t+0+0000000000.json": b'{"id":0}\n{"id":2}\n'},
            id="tombstones are ignored",
        ),
        pytest.param(
            {"connector.class": "io.aiven.kafka.connect.gcs.GcsSinkConnector"}
            | {"format.output.fields": "key,value,offset,timestamp,headers"},
            [record(3, b"a,b", key="k", headers=Headers().add("h", b"\x01", Schema.bytes())), record(4, None)],
            {"t-0-3": b"aw==,YSxi,3,1700000000000,aA==:AQ==;\n,,4,1700000000000,\n"},
            id="Aiven: CSV is the default",
        ),
        pytest.param(
            {"format.output.type": "json", "format.output.fields": "value,timestamp,headers,key"},
            [
                record(0, {"id": 0}, key="k", headers=Headers().add("h", "v").add("h", 1)),
                record(1, None, time=BEGIN + 5),
            ],
            {
                "t-0-0": b'[\n{"value":{"id":0},"timestamp":"2023-11-14T22:13:20Z","headers":[{"key":"h","value":"v"},'
                b'{"key":"h","value":1}],"key":"k"},\n'
                b'{"value":null,"timestamp":"2023-11-14T22:13:20.005Z","headers":[],"key":null}\n]'
            },
            id="Aiven: a JSON array of envelopes",
        ),
    ],
)
def test_contents_of_files(
    tmp_path: Path, props: Mapping[str, str], records: Sequence[SinkRecord], expected: Mapping[str, bytes]
) -> None:
    assert written(tmp_path, props, records) == expected


def test_compressed_files_are_the_same_each_time(tmp_path: Path) -> None:
    props = {**JSON, "flush.size": "4", "s3.compression.type": "gzip", "s3.compression.level": "9"}
    first = written(tmp_path / "a", props, maps(4))
    assert first == written(tmp_path / "b", props, maps(4))
    ((name, data),) = first.items()
    assert name == "topics/t/partition=0/t+0+0000000000.json.gz"
    assert gzip.decompress(data) == b'{"id":0}\n{"id":1}\n{"id":2}\n{"id":3}\n'


def test_bad_records_are_given_up_alone(tmp_path: Path) -> None:
    """Of a batch, those that the file, the folder or the schema cannot hold; their neighbours arrive."""
    errant = ErrantRecords[SinkRecord](tolerate=True)
    props = {**JSON, "flush.size": "2", "partitioner.class": "FieldPartitioner", "partition.field.name": "c"}
    given = [
        record(0, {"id": 0, "c": "x"}),
        record(1, {"id": 1}),
        record(2, "no struct"),
        record(3, {"id": 3, "c": 1.5}),
        record(4, {"id": 4, "c": "x", "bad": object}),
        record(5, {"id": 5, "c": "x"}),
    ]
    # Bad records do not count for flush.size.
    assert ids(written(tmp_path, props, given, errant)) == {"topics/t/c=x/t+0+0000000000.json": [0, 5]}
    assert [bad.original_offset for bad, _ in errant.reported] == [1, 2, 3, 4]


def test_what_columns_cannot_hold_is_given_up_in_each_folder(tmp_path: Path) -> None:
    """The records of a batch are converted together, and each one alone if that fails."""
    errant = ErrantRecords[SinkRecord](tolerate=True)
    props = {"format.class": "ParquetFormat", "flush.size": "8", "partitioner.class": "FieldPartitioner"}
    given = [record(at, {"id": "text" if at in (3, 4) else at, "name": "ab"[at % 2]}, schema=A) for at in range(10)]
    found = written(tmp_path, {**props, "partition.field.name": "name"}, given, errant)
    assert {name: pq.read_table(BytesIO(data))["id"].to_pylist() for name, data in found.items()} == {
        "topics/t/name=a/t+0+0000000000.snappy.parquet": [0, 2, 6, 8],
        "topics/t/name=b/t+0+0000000001.snappy.parquet": [1, 5, 7, 9],
    }
    assert sorted(bad.original_offset for bad, _ in errant.reported) == [3, 4]


@pytest.mark.parametrize("combine", ["true", "false"])
def test_bad_records_are_given_up_each_once_in_whatever_order_they_are_found(tmp_path: Path, combine: str) -> None:
    """That a value is bad is found after nulls and missing folders further behind."""
    errant = ErrantRecords[SinkRecord](tolerate=True)
    props = {**JSON, "flush.size": "2", "partitioner.class": "FieldPartitioner", "partition.field.name": "c"}
    props |= {"behavior.on.null.values": "fail", "combine.partitions": combine, "rotate.on.offset.commit": "true"}
    given = [
        record(0, {"id": 0, "c": "x", "bad": object}),
        record(1, {"id": 1, "c": "y", "bad": object}),
        record(2, {"id": 2, "c": "x", "bad": object}),
        record(3, {"id": 3}),
        record(4),
        record(5, {"id": 5, "c": "x"}),
    ]
    assert list(ids(written(tmp_path, props, given, errant)).values()) == [[5]]
    assert sorted(bad.original_offset for bad, _ in errant.reported) == [0, 1, 2, 3, 4]


def test_the_first_bad_record_fails_the_task_without_a_queue(tmp_path: Path) -> None:
    props = {"format.class": "ByteArrayFormat", "flush.size": "2"}
    with pytest.raises(
        ConnectError, match="offset 1 of t-0 cannot be written: ByteArrayFormat writes bytes, not a str"
    ):
        written(tmp_path, props, [record(0, b"a"), record(1, "b")])


def test_a_value_in_base64_is_what_it_was(tmp_path: Path) -> None:
    files = written(tmp_path, {"format.output.type": "csv"}, [record(0, bytes(range(256)))])
    assert base64.b64decode(files["t-0-0"]) == bytes(range(256))
