"""Raw records of exact offset ranges, read by Spark's Kafka source."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from connect.bulk import OffsetRange
from connect.errors import ConnectError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["kafka_partitions", "read_options", "read_ranges"]

# Spark sets these itself and refuses to be given them, or they only matter to members of a group.
_SPARKS_OWN: Final = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "auto.commit.interval.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "interceptor.classes",
        "key.deserializer",
        "partition.assignment.strategy",
        "value.deserializer",
    }
)
# Kafka's own are made for many small polls. After each poll Spark asks where the partition begins and ends: what was
# fetched ahead is lost with that, so that a poll should take the whole of what was fetched. And the broker answers
# only when the fetch ahead has ended, which at the end of a partition takes as long as a fetch may wait.
_FETCH: Final[Mapping[str, str]] = {
    "max.poll.records": "50000",
    "max.partition.fetch.bytes": str(4 * 1024 * 1024),
    "fetch.max.wait.ms": "10",
    "receive.buffer.bytes": str(1024 * 1024),
}
_LEAST_SPLIT: Final = 20_000
_SPLIT: Final = re.compile(r"KafkaSourceRDDPartition\((\d+),KafkaOffsetRange\([\w.-]+-(\d+),")
_WHOLE: Final = 2**31 - 1
_COLUMNS: Final = ("partition", "offset", "value")
_MILLISECONDS: Final = "unix_millis(timestamp) AS timestamp"
_MORE_COLUMNS: Final = ("key", "timestamp", "timestampType", "headers")


def read_options(ranges: Sequence[OffsetRange], consumer: Mapping[str, str], parallelism: int) -> dict[str, str]:
    """The options of Spark's Kafka source for reading exactly these ranges.

    ``consumer`` are a Kafka consumer's properties by their Java names. Large ranges are split when there are
    fewer of them than Spark could work at.
    """
    assign: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for item in ranges:
        assign.setdefault(item.topic, []).append(item.partition)
        starts.setdefault(item.topic, {})[str(item.partition)] = item.first
        ends.setdefault(item.topic, {})[str(item.partition)] = item.end
    known = {**_FETCH, **consumer}
    options = {f"kafka.{name}": value for name, value in known.items() if name not in _SPARKS_OWN}
    options |= {
        "assign": json.dumps(assign),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        # A range that the broker no longer has is an error, not a smaller table (invariant I4).
        "failOnDataLoss": "true",
    }
    if group := consumer.get("group.id"):
        options["groupIdPrefix"] = group
    splits = min(parallelism, sum(map(len, ranges)) // _LEAST_SPLIT)
    if splits > len(ranges):
        options["minPartitions"] = str(splits)
    return options


def read_ranges(
    spark: SparkSession,
    ranges: Sequence[OffsetRange],
    consumer: Mapping[str, str],
    *,
    whole: bool,
    timed: bool = False,
    prefix: bytes = b"",
    split: bool = True,
) -> DataFrame:
    """The records of ranges of one topic.

    With ``whole`` they have their keys, timestamps and headers too, with ``timed`` their timestamps.
    A ``prefix`` is cut off the values that begin with it, and a column ``cut`` tells which: it does not leave Spark's
    Java then. Without ``split`` each range is read by one task, in order.
    """
    options = read_options(ranges, consumer, spark.sparkContext.defaultParallelism if split else 1)
    reader = spark.read.format("kafka").options(**options)
    if whole:
        names = [_MILLISECONDS if name == "timestamp" else name for name in (*_COLUMNS, *_MORE_COLUMNS)]
        frame = reader.option("includeHeaders", "true").load().selectExpr(*names)
    else:
        frame = reader.load().selectExpr(*_COLUMNS, *([_MILLISECONDS] if timed else []))
    return _without(prefix, frame) if prefix else frame


def _without(prefix: bytes, frame: DataFrame) -> DataFrame:
    """The records with the prefix cut off their values, as far as these begin with it."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - only the driver has pyspark

    begins = f.coalesce(f.startswith("value", f.lit(prefix)), f.lit(False))
    rest = f.substring("value", len(prefix) + 1, _WHOLE)
    return frame.withColumns({"cut": begins, "value": f.when(begins, rest).otherwise(f.col("value"))})


def kafka_partitions(frame: DataFrame) -> dict[int, int]:
    """The partition of the topic that each of Spark's partitions of a frame reads, which has moved no rows."""
    plain = cast("Any", frame)
    partitions = plain._jdf.queryExecution().toRdd().partitions()
    # One call for all of them, of which there may be thousands.
    text = plain.sparkSession.sparkContext._jvm.scala.runtime.ScalaRunTime.stringOf(partitions)
    found = {int(number): int(partition) for number, partition in _SPLIT.findall(text)}
    if len(found) != len(partitions):
        raise ConnectError(
            "Spark does not tell which partitions of the topic it reads, after which folders are named: use the "
            "version of PySpark that Sluice asks for, or another partitioner.class than DefaultPartitioner."
        )
    return found
