"""The contenders of ``bench/spark_sink.py``: each loads a topic into Parquet or Iceberg, lap after lap in one process.

It reads its orders, a JSON object, from the command line, and prints ``ready``, then ``begin`` and ``end`` around each
lap.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# When this file runs as a script, bench/converters.py would hide the package of the same name.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE]
sys.path.append(str(_HERE.parent / "tests"))

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.json
import pyarrow.parquet as pq

from connect.bulk import OffsetRange
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.session import start_session
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import Access
from equipment.workers.bulk_context import BulkContext

COLUMNS = (
    "id BIGINT, carrier STRING, origin STRING, dest STRING, tail STRING, distance BIGINT, delay DOUBLE, late BOOLEAN"
)
AVRO_SCHEMA = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "carrier", "type": "string"},
        {"name": "origin", "type": "string"},
        {"name": "dest", "type": "string"},
        {"name": "tail", "type": ["null", "string"], "default": None},
        {"name": "distance", "type": "long"},
        {"name": "delay", "type": ["null", "double"], "default": None},
        {"name": "late", "type": "boolean"},
    ],
}
AVRO_HEADER = 5
"""The bytes before the record: a zero byte and the id of its schema in the registry."""
_BATCH = 10_000
_CODEC = "snappy"


@dataclass(frozen=True, slots=True)
class Orders:
    """What to load: ``records`` of each of the ``partitions`` of a topic, ``laps`` times."""

    contender: str
    kind: str
    topic: str
    bootstrap: str
    registry: str
    records: int
    partitions: int
    laps: int
    master: str
    folder: str

    @property
    def ranges(self) -> list[OffsetRange]:
        """Return ranges that cover the whole topic."""
        return [OffsetRange(self.topic, partition, 0, self.records) for partition in range(self.partitions)]

    @property
    def total(self) -> int:
        """The number of records in all partitions."""
        return self.records * self.partitions


Lap = Callable[[Path], None]
"""Loads all records into a folder that does not exist yet."""


def sluice(orders: Orders) -> Lap:
    """Load with Sluice's own sink, with exactly-once, to Parquet."""
    return _sluice(orders, {})


def sluice_iceberg(orders: Orders) -> Lap:
    """Load in the same way into an Iceberg table in a Hadoop catalog."""
    if all(key.name != "table.format" for key in SparkSinkConfig.definitions()):
        raise SystemExit("this Sluice writes no Iceberg tables")
    return _sluice(orders, {"table.format": "iceberg"})


def _sluice(orders: Orders, more: Mapping[str, str]) -> Lap:
    converters = {
        "bytes": {"value.converter": "converters.byte_array.ByteArrayConverter"},
        "json": {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false"},
        "json+schema": {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "true"},
        "avro": {
            "value.converter": "converters.avro.AvroConverter",
            "value.converter.schema.registry.url": orders.registry,
        },
    }
    props = {
        "name": "bench",
        "key.converter": "converters.byte_array.ByteArrayConverter",
        "parquet.codec": _CODEC,
        "spark.master": orders.master,
        "spark.driver.memory": "1g",
        **converters[orders.kind],
        **more,
    }
    # The session is shared by the process, so tasks that start later get this one.
    start_session(props, "bench", Access())

    def lap(folder: Path) -> None:
        given = {**props, "store.url": str(folder)}
        task = SparkSinkTask(SparkSinkConfig.parse(given), BulkContext("bench", orders.bootstrap, given))
        task.start()
        task.load(orders.ranges)

    return lap


def streaming(orders: Orders) -> Lap:
    """Load with a hand-written Structured Streaming job with availableNow."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - not for the contender without Spark
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415

    spark = _spark(orders)
    value = f.col("value").cast("string")
    payload = {
        "json": lambda: f.from_json(value, COLUMNS),
        "json+schema": lambda: f.from_json(value, f"payload STRUCT<{COLUMNS}>").payload,
        "avro": lambda: from_avro(f.expr(f"substring(value, {AVRO_HEADER + 1})"), json.dumps(AVRO_SCHEMA)),
    }[orders.kind]()

    def lap(folder: Path) -> None:
        source = spark.readStream.format("kafka").options(**_kafka(orders)).option("subscribe", orders.topic)
        rows = source.option("startingOffsets", "earliest").load().select(payload.alias("row")).select("row.*")
        writer = rows.writeStream.format("parquet").option("compression", _CODEC).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(folder / "data"))
        query.awaitTermination()

    return lap


def raw(orders: Orders) -> Lap:
    """Write the unconverted bytes with Spark's batch reader: the ceiling."""
    spark = _spark(orders)

    def lap(folder: Path) -> None:
        rows = spark.read.format("kafka").options(**_kafka(orders)).option("subscribe", orders.topic).load()
        rows.select("value").write.option("compression", _CODEC).parquet(str(folder))

    return lap


def python(orders: Orders) -> Lap:
    """Load with one Python process using confluent-kafka and pyarrow: no threads, no commits, no guarantees."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - as above

    tables = _tables(orders.kind)

    def lap(folder: Path) -> None:
        folder.mkdir(parents=True)
        settings = {"bootstrap.servers": orders.bootstrap, "group.id": "bench", "fetch.queue.backoff.ms": 10}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.assign([TopicPartition(orders.topic, partition, 0) for partition in range(orders.partitions)])
        writer: Any = None
        read = 0
        while read < orders.total:
            values = [message.value() for message in consumer.consume(_BATCH, 1.0) if message.error() is None]
            if not values:
                continue
            table = tables(values)
            writer = writer or pq.ParquetWriter(folder / "rows.parquet", table.schema, compression=_CODEC)
            writer.write_table(table)
            read += len(values)
        writer.close()
        consumer.close()

    return lap


def _tables(kind: str) -> Callable[[list[bytes]], Any]:
    if kind == "avro":
        return _avro_table

    def from_json(values: list[bytes]) -> Any:
        table = pyarrow.json.read_json(pa.BufferReader(b"\n".join(values)))
        if kind == "json+schema":
            return pa.Table.from_batches([pa.RecordBatch.from_struct_array(part) for part in table["payload"].chunks])
        return table

    return from_json


def _avro_table(values: list[bytes]) -> Any:
    import io  # noqa: PLC0415

    import fastavro  # noqa: PLC0415 - of the contender of this name alone

    schema = fastavro.parse_schema(AVRO_SCHEMA)
    rows = [fastavro.schemaless_reader(io.BytesIO(value[AVRO_HEADER:]), schema) for value in values]  # type: ignore[call-arg]
    return pa.Table.from_pylist(rows)


def _spark(orders: Orders) -> Any:
    jars = resolve_jars(read_lock(Path(__file__).with_name("spark_avro.jars")), home=sluice_home())
    settings = {"spark.master": orders.master, "spark.driver.memory": "1g", "spark.jars": ",".join(map(str, jars))}
    return start_session(settings, "bench", Access())


def _kafka(orders: Orders) -> dict[str, str]:
    """Return the options that Sluice passes to Spark's consumers. With Kafka's defaults they would mostly wait."""
    fetch = {"max.poll.records": "50000", "max.partition.fetch.bytes": str(4 * 1024 * 1024), "fetch.max.wait.ms": "10"}
    settings = {f"kafka.{name}": value for name, value in fetch.items()}
    return {"kafka.bootstrap.servers": orders.bootstrap, **settings}


CONTENDERS = {"sluice": sluice, "sluice-iceberg": sluice_iceberg, "streaming": streaming, "raw": raw, "python": python}


def rows_in(folder: Path) -> int:
    """Return the number of rows that a contender has written."""
    files = [path for path in _visible(folder) if path.stat().st_size]
    return int(ds.dataset([str(path) for path in files], format="parquet").count_rows()) if files else 0


def _visible(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.parquet"):
        if not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts):
            yield path


def main() -> None:
    """Run the laps."""
    orders = Orders(**json.loads(sys.argv[1]))
    lap = CONTENDERS[orders.contender](orders)
    print("ready", flush=True)
    for number in range(orders.laps):
        folder = Path(orders.folder) / str(number)
        print("begin", flush=True)
        lap(folder)
        print("end", flush=True)
        if (found := rows_in(folder)) != orders.total:
            raise SystemExit(f"{orders.contender} wrote {found} rows of {orders.total} records")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
