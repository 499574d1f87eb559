"""Files of tables in a real worker that is killed while it reads them."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

COUNT = 4_000
MakeWorker = Callable[..., StandaloneWorker]
AVRO = {"type": "record", "name": "row", "fields": [{"name": "n", "type": "long"}]}


def write(folder: Path) -> None:
    """A file of each format, each in a folder of its own; all numbers differ."""
    for place, name in enumerate(("avro", "orc", "parquet")):
        numbers = range(place * COUNT, (place + 1) * COUNT)
        file = folder / f"part={place}" / f"a.{name}"
        file.parent.mkdir(parents=True)
        if name == "avro":
            with file.open("wb") as out:
                fastavro.writer(out, AVRO, ({"n": number} for number in numbers), codec="deflate")
        elif name == "orc":
            orc.write_table(pa.table({"n": numbers}), str(file))
        else:
            pq.write_table(pa.table({"n": numbers}), file, row_group_size=900)


@pytest.mark.parametrize("victim", ["worker", "task"])
def test_a_kill_loses_nothing(standalone: MakeWorker, topic: str, bootstrap: str, tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "in"
    write(folder)
    worker = standalone(value_converter="JsonConverter", **{"value.converter.schemas.enable": "false"})
    worker.connector(
        "tables",
        connector_class="DirectorySource",
        path=str(folder),
        topic=topic,
        recursive="true",
        partition_fields="inferred",
        batch_size="10",
        settle_ms="0",
        finished_action="delete",
        run_until="drained",
    )
    worker.start()
    offsets = worker.folder / "offsets"
    wait_until("offsets are committed", lambda: offsets.exists() and offsets.stat().st_size > 0, seconds=60)
    if victim == "task":
        os.kill(worker.task_pid("tables"), signal.SIGKILL)
        assert worker.wait(180) == 3, worker.log()
    else:
        worker.kill()
    assert worker.run(seconds=180) == 0, worker.log()
    rows = [json.loads(message.value()) for message in read_topic(bootstrap, topic)]
    found = Counter((row["n"], row["part"]) for row in rows)
    assert found.keys() == {(number, number // COUNT) for number in range(3 * COUNT)}
    assert [file for file in folder.rglob("*") if file.is_file()] == []
