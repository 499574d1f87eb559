"""The layout of the tables of the Spark sink: formats, folders, file sizes, compaction, read by other readers."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, orc

from connect.errors import ConnectError
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from connectors.spark.sink.compaction import compact
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import store_access
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.filled_topic import FilledTopic
from equipment.proofs import thorough, thorough_rows
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import sink_props

SparkSession = pytest.importorskip("pyspark.sql").SparkSession

pytestmark = [
    pytest.mark.integration,
    pytest.mark.spark,
    # PySpark leaves the socket by which it brings rows to the driver to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DAY = 86_400_000
# 2013-11-03T05:30:00Z: half past one in New York, and again an hour later.
HALF_PAST_ONE = 1_383_456_600_000
TIMED = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "partition.duration.ms": "3600000",
    "timezone": "America/New_York",
    "locale": "en-US",
    "timestamp.extractor": "Record",
}


class Sink:
    """A topic of two partitions, a store, and tasks that load the one into the other."""

    def __init__(self, bootstrap: str, topic: str, store: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.store = store
        self.table = store / "topics" / topic
        self.records = FilledTopic(bootstrap, topic, **{"retention.ms": "-1"})

    def props(self, **props: str) -> dict[str, str]:
        keys = {key.replace("_", "."): value for key, value in props.items()}
        # The jar of Avro has to be there from the start of the session that all tests share.
        return {**sink_props({"store.url": str(self.store)}), "name": "layout", **keys}

    def task(self, props: Mapping[str, str]) -> SparkSinkTask:
        task = SparkSinkTask(SparkSinkConfig.parse(props), BulkContext(props["name"], self.bootstrap, props))
        task.start()
        return task

    def files(self) -> list[str]:
        return sorted(path.relative_to(self.table).as_posix() for path in self.table.rglob("*") if path.is_file())


@pytest.fixture(scope="module", autouse=True)
def session(shared_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark, with the jar of Avro, kept for all tests of this file."""
    props = {**sink_props({"store.url": str(tmp_path_factory.mktemp("store"))}), "format.class": "AvroFormat"}
    spark = start_session(props, "layout", store_access(SparkSinkConfig.parse(props)))
    yield spark
    spark.stop()


@pytest.fixture
def sink(bootstrap: str, topic: str, tmp_path: Path) -> Sink:
    return Sink(bootstrap, topic, tmp_path)


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a file, by a reader that is not Spark."""
    name = file.name
    if name.endswith(".parquet"):
        return pq.ParquetFile(file).read().to_pylist()
    if name.endswith(".orc"):
        return orc.ORCFile(file).read().to_pylist()
    if name.endswith(".avro"):
        with file.open("rb") as content:
            return list(fastavro.reader(content))
    data = gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()
    if ".json" in name:
        return [json.loads(line) for line in data.splitlines()]
    if ".csv" in name:
        options = csv.ParseOptions(newlines_in_values=True)
        convert = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
        return csv.read_csv(pa.BufferReader(data), parse_options=options, convert_options=convert).to_pylist()
    return [{"value": line} for line in data.decode().split("\n")[:-1]]


def rows(sink: Sink) -> list[dict[str, Any]]:
    found = [row for file in sink.files() for row in read(sink.table / file)]
    return sorted(found, key=lambda row: row.get("id", 0))


FLAT = [{"id": n, "text": ("a,b", 'say "x"', "two\nlines", "", " s ", None)[n % 6], "x": n / 4} for n in range(24)]


@pytest.mark.parametrize(
    ("format_class", "codec", "extension"),
    [
        *thorough_rows(
            ("io.confluent.connect.s3.format.parquet.ParquetFormat", {"parquet.codec": "gzip"}, "gz.parquet")
        ),
        ("io.confluent.connect.hdfs.orc.OrcFormat", {"orc.codec": "zlib"}, "zlib.orc"),
        ("io.confluent.connect.s3.format.avro.AvroFormat", {"avro.codec": "deflate"}, "deflate.avro"),
        ("io.confluent.connect.s3.format.json.JsonFormat", {"s3.compression.type": "gzip"}, "json.gz"),
        *thorough_rows(("JsonFormat", {}, "json"), ("CsvFormat", {}, "csv")),
        ("CsvFormat", {"s3.compression.type": "gzip"}, "csv.gz"),
    ],
)
def test_a_format_keeps_all_rows(sink: Sink, format_class: str, codec: dict[str, str], extension: str) -> None:
    sink.records.produce(FLAT)
    task = sink.task({**sink.props(format_class=format_class), **codec})
    sink.records.drain(task)
    topic = sink.topic
    assert sink.files() == [f"partition={p}/{topic}+{p}+0000000000+0000000011.{extension}" for p in (0, 1)]
    assert rows(sink) == FLAT


def test_lines_of_text_are_written_as_they_are(sink: Sink) -> None:
    values = [f' {n}, "quoted" \\ ü' for n in range(10)]
    sink.records.produce([value.encode() for value in values])
    props = sink.props(format_class="StringFormat") | {"value.converter": "converters.string.StringConverter"}
    task = sink.task(props)
    sink.records.drain(task)
    assert sorted(row["value"] for row in rows(sink)) == sorted(values)
    assert sink.files()[0].endswith(".txt")
    sink.records.produce([b"one\ntwo"])
    with pytest.raises(ConnectError, match="line break"):
        sink.records.drain(task)


@pytest.mark.parametrize(
    ("format_class", "value", "match"),
    [
        ("CsvFormat", {"id": 1, "tags": ["a"]}, "CsvFormat cannot hold the field tags, which is of type array"),
        *thorough_rows(
            ("AvroFormat", {"id": 1, "a-b": 2}, "AvroFormat cannot hold the field a-b"),
            ("StringFormat", {"id": 1, "text": "a"}, r"the records have 2 fields \(id, text\)"),
        ),
    ],
)
def test_what_a_format_cannot_hold_is_refused_before_anything_is_written(
    sink: Sink, format_class: str, value: Any, match: str
) -> None:
    sink.records.produce([value])
    with pytest.raises(ConnectError, match=match):
        sink.records.drain(sink.task(sink.props(format_class=format_class)))
    assert not sink.table.exists()


TOLERANT = {"errors.tolerance": "all"}
BY_FIELD = {"partitioner.class": "FieldPartitioner", "partition.field.name": "k"}
BY_DAY = {"partitioner.class": "DailyPartitioner", "timestamp.extractor": "RecordField", "timestamp.field": "k"}


def queue_of(sink: Sink) -> dict[str, str]:
    """Properties of a task that sends bad records to a queue of its own."""
    return {**TOLERANT, "errors.deadletterqueue.topic.name": f"{sink.topic}-dlq"}


@pytest.mark.parametrize(
    ("props", "bad", "good"),
    [
        ({"format.class": "AvroFormat"}, {"id": 2, "k": "x", "o": [{"a[]": 2}]}, {"id": 1, "k": "x"}),
        (BY_DAY, {"id": 2, "k": True}, {"id": 1, "k": "2013-01-02"}),
        *thorough_rows(
            ({"format.class": "CsvFormat"}, {"id": 2, "tags": ["a"]}, {"id": 1, "k": "x"}),
            (BY_FIELD, {"id": 2, "k": {"a": 1}}, {"id": 1, "k": "x"}),
            ({"format.class": "AvroFormat"}, {"id": 2, "a-b": 2}, {"id": 1, "k": "x"}),
            ({"format.class": "AvroFormat"}, {"id": 2, "a.b": 2}, {"id": 1, "k": "x"}),
            ({"format.class": "StringFormat"}, {"id": "2", "k": "x"}, {"value": "x"}),
            (BY_DAY, {"id": 2}, {"id": 1, "k": "2013-01-02"}),
        ),
    ],
)
def test_a_record_that_files_or_folders_cannot_hold_is_bad_alone(
    sink: Sink, props: dict[str, str], bad: Any, good: Any
) -> None:
    task = sink.task({**sink.props(), **props, **queue_of(sink)})
    # The bad ones come first: in the load that makes the table, and in a later one.
    for loads in (1, 2):
        sink.records.produce([bad, good, good, bad])
        sink.records.drain(task)
        assert len(rows(sink)) == 2 * loads
        assert len(dead_letters(sink.bootstrap, f"{sink.topic}-dlq")) == 2 * loads
    with pytest.raises(ConnectError, match=r"Bad record in topic .*, partition 0, offset 4: "):
        sink.records.produce([bad])
        sink.records.drain(sink.task({**sink.props(), **props}))


TEXTS = {
    "format.class": "StringFormat",
    "value.converter": "converters.string.StringConverter",
    "behavior.on.null.values": "write",
}


@pytest.mark.parametrize(
    ("props", "bad", "good"),
    [
        ({"format.class": "CsvFormat", **BY_FIELD}, [{"k": "a"}, {"k": "b", "t": None}], {"t": "x", "k": "a"}),
        *thorough_rows(
            (TEXTS, [b"one\ntwo", None, b"one\rtwo"], b"x"),
            (BY_FIELD, [{"id": 2, "k": "y" * 300}, {"id": 3, "k": "/" * 100}], {"id": 1, "k": "y" * 253}),
            ({"format.class": "StringFormat"}, [{"t": "one\r\ntwo"}, {"t": None}, {"t": "\n"}], {"t": ""}),
            ({"format.class": "StringFormat", **BY_FIELD}, [{"t": "\n", "k": "a"}, {"k": "a"}], {"t": "x", "k": "a"}),
            ({"format.class": "CsvFormat"}, [{"t": None}, {"t": None}], {"t": ""}),
            ({"format.class": "CsvFormat", **BY_DAY}, [{"k": None}, {}], {"k": "2013-01-02"}),
            (BY_FIELD, [{"id": 2, "k": ""}, {"id": 3, "k": "__HIVE_DEFAULT_PARTITION__"}], {"id": 1, "k": None}),
        ),
    ],
)
def test_a_value_that_files_or_folders_cannot_hold_is_bad_alone(
    sink: Sink, props: dict[str, str], bad: list[Any], good: Any
) -> None:
    headers = {"errors.deadletterqueue.context.headers.enable": "true"}
    task = sink.task({**sink.props(), **props, **queue_of(sink), **headers})
    # Without any good record, in the load that makes the table and in a later one, and beside good ones in both.
    others = sink.task({**sink.props(), **props, **queue_of(sink), **headers, "name": "others", "topics.dir": "others"})
    sink.records.produce(bad)
    sink.records.drain(task)
    assert rows(sink) == []
    for loads in (1, 2):
        sink.records.produce([good, *bad, good])
        sink.records.drain(task)
        assert len(rows(sink)) == 2 * loads
        sink.records.drain(others)
    sink.records.produce(bad)
    sink.records.drain(task)
    assert len(rows(sink)) == 4
    letters = dead_letters(sink.bootstrap, f"{sink.topic}-dlq")
    reasons = [
        bytes(dict(message.headers() or []).get("__connect.errors.exception.message") or b"") for message in letters
    ]
    told = re.compile(rb"The (only column|field) \w|No field of the records|lists every field of the records")
    assert [reason for reason in reasons if not told.search(reason)] == []
    assert sorted(message.value() or b"" for message in letters) == sorted(
        (value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode())
        for value in bad * 7
    )
    sink.records.produce(bad[:1])
    with pytest.raises(ConnectError, match=r"Bad record in topic .*, partition 0, offset \d+: .*(The|timestamp\.)"):
        sink.records.drain(sink.task({**sink.props(), **props}))


@pytest.mark.parametrize("props", [BY_FIELD, *thorough(BY_DAY), {}])
def test_records_that_all_lack_what_the_table_needs_are_bad(sink: Sink, props: dict[str, str]) -> None:
    bad: dict[str, Any] = {"id": 1} if props else {}
    sink.records.produce([bad, bad, bad])
    failing = sink.task({**sink.props(), **props})
    with pytest.raises(ConnectError, match=r"Bad record in topic .*, partition 0, offset 0: .*(k|value\.schema)"):
        sink.records.drain(failing)
    with pytest.raises(ConnectError, match=r"errors\.tolerance\.limit"):
        sink.records.drain(sink.task({**sink.props(), **props, **queue_of(sink), "errors.tolerance.limit": "2"}))
    task = sink.task({**sink.props(), **props, **queue_of(sink)})
    sink.records.drain(task)
    letters = dead_letters(sink.bootstrap, f"{sink.topic}-dlq")
    assert {(message.partition(), message.value()) for message in letters} <= {(0, json.dumps(bad).encode())}
    assert len(letters) >= 3
    sink.records.produce([{"id": 2, "k": "2013-01-02"}])
    sink.records.drain(task)
    assert [row["id"] for row in rows(sink)] == [2]


def test_types_are_exact_in_each_format(sink: Sink) -> None:
    fields = [
        {"field": "id", "type": "int32"},
        {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
        {"field": "day", "type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1},
        {
            "field": "price",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
        },
        {"field": "data", "type": "bytes"},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
    ]
    schema = {"type": "struct", "fields": fields}
    payload = {"id": 1, "at": 1500, "day": 1, "price": "AMg=", "data": "AAH/", "tags": ["a", "b"]}
    sink.records.produce([{"schema": schema, "payload": payload}])
    found = {}
    for name in ("ParquetFormat", "OrcFormat", "AvroFormat", "JsonFormat"):
        props = sink.props(format_class=name, topics_dir=name, value_converter_schemas_enable="true", name=name)
        sink.records.drain(sink.task(props))
        (file,) = [path for path in (sink.store / name).rglob("*") if path.is_file()]
        found[name] = {key: str(value) for key, value in read(file)[0].items()}
    exact = {
        "id": "1",
        "at": "1970-01-01 00:00:01.500000+00:00",
        "day": "1970-01-02",
        "price": "2.00",
        "data": str(b"\x00\x01\xff"),
        "tags": "['a', 'b']",
    }
    assert found["ParquetFormat"] == found["AvroFormat"] == exact
    # The timestamps of ORC have no zone; they are in UTC.
    assert found["OrcFormat"] == exact | {"at": "1970-01-01 00:00:01.500000"}
    assert found["JsonFormat"] == exact | {"at": "1970-01-01T00:00:01.500000Z", "price": "2.0", "data": "AAH/"}


def test_folders_by_the_times_of_records(sink: Sink) -> None:
    # An hour that the clocks show twice has one folder.
    instants = [HALF_PAST_ONE + n * 3_600_000 for n in range(4)] * 10
    sink.records.produce([{"id": n} for n in range(40)], timestamp=instants)
    sink.records.drain(sink.task(sink.props() | TIMED))
    folders = [f"year=2013/month=11/day=03/hour={hour}" for hour in ("01", "02", "03")]
    assert [file.rpartition("/")[0] for file in sink.files()] == folders
    # Rows of both partitions are in one file, which is named after the load.
    assert sink.files()[0].endswith(f"/{sink.topic}+0-1+load-0000000002.snappy.parquet")
    assert rows(sink) == [{"id": n} for n in range(40)]


def test_folders_by_a_field_and_by_the_wall_clock(sink: Sink) -> None:
    days = ["2013-01-01T23:30:00-05:00", "2013-01-02T05:00:00Z", "2013-01-03"]
    sink.records.produce([{"id": n, "of": {"at": days[n % 3]}} for n in range(12)])
    props = sink.props(partitioner_class="DailyPartitioner", timestamp_extractor="RecordField", timestamp_field="of.at")
    task = sink.task(props)
    sink.records.drain(task)
    assert sorted({file.rpartition("/")[0] for file in sink.files()}) == [
        "year=2013/month=01/day=02",
        "year=2013/month=01/day=03",
    ]
    assert rows(sink)[0] == {"id": 0, "of": {"at": days[0]}}
    sink.records.produce([{"id": 12, "of": {"at": "soon"}}])
    with pytest.raises(ConnectError, match=r"partition 0, offset 6: timestamp\.field=of\.at tells no time"):
        sink.records.drain(task)
    tolerant = sink.task(props | {"errors.tolerance": "all"})
    sink.records.drain(tolerant)
    assert len(rows(sink)) == 12

    other = sink.props(partitioner_class="TimeBasedPartitioner", path_format="YYYY/MM", topics_dir="other")
    other |= {"partition.duration.ms": str(DAY), "name": "other", "errors.tolerance": "all"}
    sink.records.drain(sink.task(other))
    (folder,) = {
        file.parent.relative_to(sink.store / "other" / sink.topic) for file in sink.store.glob("other/*/*/*/*")
    }
    assert len(folder.parts) == 2
    assert folder.parts[0].isdecimal()


@pytest.mark.parametrize("query", [*thorough({}), {"sql": "SELECT * FROM records"}])
def test_the_zone_of_the_session_does_not_move_the_names_of_folders(
    sink: Sink, session: Any, query: dict[str, str]
) -> None:
    fields = [
        {"field": "id", "type": "int32"},
        {"field": "t", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
    ]
    enveloped = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": 1, "t": 0}}
    props = sink.props(partitioner_class="FieldPartitioner", value_converter_schemas_enable="true")
    props |= {"partition.field.name": "t", **query}
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        task = sink.task(props)
        for _ in range(2):
            sink.records.produce([enveloped, enveloped])
            sink.records.drain(task)
        (done,) = compact(task._target, None, lambda: False)
        assert done.files_before > done.files_after
        merged = sink.task(props | {"topics.dir": "merged", "name": "merged", "target.file.size.bytes": "1048576"})
        sink.records.drain(merged)
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")
    for folder in (sink.table, sink.store / "merged" / sink.topic):
        assert {path.name for path in folder.iterdir()} == {"t=1970-01-01 00%3A00%3A00"}


def test_a_topic_whose_files_readers_ignore_is_told_once(
    bootstrap: str, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hidden = Sink(bootstrap, f"_{topic}", tmp_path)
    task = hidden.task(hidden.props())
    for _ in range(2):
        hidden.records.produce([{"id": 1, "_x": 2}])
        hidden.records.drain(task)
    assert [row["_x"] for row in rows(hidden)] == [2, 2]
    told = [record.getMessage() for record in caplog.records if record.name == "connectors.spark.sink.ledger.target"]
    assert [text.partition(",")[0] for text in told] == [f"The files of topic _{topic} have its name"]


def test_folders_by_nested_fields(sink: Sink) -> None:
    sink.records.produce([{"id": n, "gate": {"name": f"B/{n % 2}"}, "origin": "EWR"} for n in range(8)])
    props = sink.props(partitioner_class="FieldPartitioner") | {"partition.field.name": "origin,gate.name"}
    sink.records.drain(sink.task(props))
    assert [file.rpartition("/")[0] for file in sink.files()] == [f"origin=EWR/gate.name=B%2F{n}" for n in (0, 1)]
    assert rows(sink) == [{"id": n, "gate": {"name": f"B/{n % 2}"}} for n in range(8)]


def test_many_folders_are_one_file_each(sink: Sink) -> None:
    sink.records.produce([{"id": n, "key": n % 50} for n in range(2000)])
    props = sink.props(partitioner_class="FieldPartitioner") | {"partition.field.name": "key"}
    sink.records.drain(sink.task(props))
    assert len(sink.files()) == 50
    assert len(rows(sink)) == 2000


def test_a_target_size_merges_and_splits_the_files_of_a_load(sink: Sink) -> None:
    texts = random.Random(14)
    size = 1024 * 1024
    task = sink.task(sink.props(target_file_size_bytes=str(size)))
    for load in range(2):
        sink.records.produce([{"id": 4000 * load + n, "text": texts.randbytes(700).hex()} for n in range(4000)])
        sink.records.drain(task)
    sizes = {file: (sink.table / file).stat().st_size for file in sink.files()}
    assert {file.partition("/")[0] for file in sizes} == {"partition=0", "partition=1"}
    # How large the rows are is known once some were written.
    second = [size for file, size in sizes.items() if "+0000002000+0000003999" in file]
    assert len(second) >= 4
    assert max(second) < 1.5 * size
    assert [row["id"] for row in rows(sink)] == list(range(8000))


@pytest.mark.parametrize("format_class", ["ParquetFormat", *thorough("JsonFormat", "OrcFormat", "AvroFormat")])
def test_compaction_merges_what_loads_have_left(sink: Sink, format_class: str) -> None:
    task = sink.task(sink.props(format_class=format_class))
    expected = []
    for load in range(3):
        values = [{"id": 10 * load + n, "tags": [f"x{n}"], **({"new": n} if load == 2 else {})} for n in range(10)]
        expected += values
        sink.records.produce(values)
        sink.records.drain(task)
    assert len(sink.files()) == 6
    foreign = sink.table / "partition=0" / "notes.txt"
    foreign.write_text("not ours")

    config = SparkSinkConfig.parse(sink.props(format_class=format_class))
    (done,) = SparkSinkConnector.compact(config, None)
    foreign.unlink()
    assert (done.table, done.files_before, done.files_after) == (sink.topic, 6, 2)
    suffix = sink.files()[0].partition(".")[2]
    names = [f"partition={p}/{sink.topic}+{p}+0000000000+0000000014" for p in (0, 1)]
    # The loads are 2, 3 and 4, the claim of the command 5.
    assert sink.files() == [f"{names[0]}+compacted-0000000006.{suffix}", f"{names[1]}+compacted-0000000006+1.{suffix}"]
    complete = [{"new": None, **value} for value in expected]
    assert [{"new": None, **row} for row in rows(sink)] == complete
    assert list(SparkSinkConnector.compact(config, None)) == []
