"""Runs a Spark sink task as the worker does, in small: plan a small range, load, commit the group's offsets.

python spark_driver.py '{"name": ..., "topic": ..., "bootstrap": ..., "flush": ..., "props": {...}}'

It ends when the topic is drained. Tests that start it often fork it, see ``equipment.workers.spark_drivers``.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer
from pyspark.java_gateway import launch_gateway

from connect.bulk import OffsetRange
from connect.data import TopicPartition
from connect.internals.crash import crash_point
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig

sys.path.insert(0, str(Path(__file__).parents[2]))

from equipment.workers.bulk_context import BulkContext

_LATE: Final = 240.0
"""After this many seconds it prints its stacks."""


def stop_leftover() -> None:
    """Stop the context that a killed driver has left in the shared JVM, which can have only one."""
    contexts = getattr(getattr(launch_gateway().jvm.org.apache.spark, "SparkContext$"), "MODULE$")
    left = contexts.getActive()
    if left.isDefined():
        left.get().stop()


def run(order: Mapping[str, Any], started: Callable[[], None]) -> None:
    """Load a topic; ``started`` is called when the task has started."""
    # Tests wait five minutes for this process.
    faulthandler.dump_traceback_later(_LATE)
    # What Spark says is shown with a failure.
    logging.basicConfig(level=logging.INFO)
    topic, props = order["topic"], order["props"]
    context = BulkContext(order["name"], order["bootstrap"], props)
    consumer = Consumer({**context.consumer_settings, "enable.auto.commit": "false"})
    partitions = sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    ends = {
        TopicPartition(topic, number): consumer.get_watermark_offsets(
            confluent_kafka.TopicPartition(topic, number), timeout=30
        )[1]
        for number in partitions
    }
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        stop_leftover()
    task = SparkSinkTask(SparkSinkConfig.parse(props), context)
    task.start()
    positions = {tp: task.committed().get(tp, 0) for tp in ends}
    started()
    while any(positions[tp] < end for tp, end in ends.items()):
        ranges = [OffsetRange(*tp, positions[tp], min(end, positions[tp] + order["flush"])) for tp, end in ends.items()]
        task.load([item for item in ranges if len(item)])
        crash_point("before-offset-commit")
        positions |= {item.topic_partition: item.end for item in ranges}
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition(*tp, offset) for tp, offset in positions.items()],
            asynchronous=False,
        )
    task.stop()
    consumer.close()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]), lambda: None)
