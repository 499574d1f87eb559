"""Runs the task of an object sink over records that are always the same, and commits offsets to a file.

The order names the connector's class, its configuration, the number of records and the file. Between a commit and the
file there is nothing that could be lost: the file is Kafka's group.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from connect.data import Headers, Schema, SinkRecord, TimestampType, TopicPartition
from connect.errors import RetriableError
from connect.testing.sink_run import SinkTaskRun, TopicLog, sink_task_class

__all__ = ["PARTITIONS", "SCHEMA", "TOPIC", "value_of"]

TOPIC: Final = "flights"
PARTITIONS: Final = 3
BATCH: Final = 37
COMMIT_EVERY: Final = 3
"""Batches; a commit comes some files behind."""
SCHEMA: Final = Schema.struct(
    {"id": Schema.int64(), "origin": Schema.string(), "note": Schema.string(optional=True)}, name="flight"
)


def value_of(number: int, width: int = 300) -> dict[str, Any]:
    """The value of a record."""
    note = None if number % 7 and width <= 300 else "x" * width
    return {"id": number, "origin": ("EWR", "JFK", "LGA")[number // 5 % 3], "note": note}


def records(count: int, width: int) -> list[SinkRecord]:
    """The records of the topic: their partition and offset follow from their number."""
    return [_record(number, width) for number in range(count)]


def _record(number: int, width: int) -> SinkRecord:
    partition, offset = number % PARTITIONS, number // PARTITIONS
    value, time = value_of(number, width), 1_700_000_000_000 + number * 1000
    key, headers = str(number), Headers().add("n", str(number), Schema.string())
    return SinkRecord(
        TOPIC, value, SCHEMA, key, Schema.string(), partition, time, headers, offset, TimestampType.CREATE_TIME,
        TOPIC, partition, offset,
    )  # fmt: skip


def main(order: dict[str, Any]) -> None:
    """Run until everything is durable; a kill may come at any moment."""
    module, _, name = order["class"].rpartition(".")
    connector_class = getattr(import_module(module), name)
    log, file = TopicLog(records(order["records"], order.get("width", 300))), Path(order["offsets"])
    if file.exists():
        stored = json.loads(file.read_text())
        log.committed = {TopicPartition(TOPIC, int(number)): at for number, at in stored.items()}
    run = SinkTaskRun(sink_task_class(connector_class), order["props"], log)
    run.start(log.partitions)
    print("started", flush=True)
    ends = {tp: (order["records"] - tp.partition + PARTITIONS - 1) // PARTITIONS for tp in log.partitions}
    batches = 0
    while log.committed != ends:
        if not _put(run):
            run.context.wait(0.005)
        batches += 1
        run.context.wait(order.get("pause", 0.0))
        if batches % COMMIT_EVERY == 0 or run.at_end:
            run.commit()
            _store(file, log.committed)
    run.stop()


def _put(run: SinkTaskRun) -> int:
    try:
        if run.at_end:
            run.put_nothing()
            return 0
        return run.put(BATCH)
    except RetriableError as error:
        print(f"again: {error}", file=sys.stderr)
        run._rewind()
        return 0


def _store(file: Path, committed: dict[TopicPartition, int]) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps({str(tp.partition): at for tp, at in committed.items()}))
    beside.replace(file)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
