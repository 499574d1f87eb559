"""Measures the cost of generating records, compared with the cost of converting them, in the same run.

    python -m bench.datagen [records]

Records per second of CPU time, the best of five rounds, in one thread. "made" are polled batches whose values are read
as columns of fields, "rows" are batches whose records are read one by one, and "JSON" are batches written by the JSON
converter without schemas. "ready" is the ceiling: the same converter on a batch that was generated before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# When this file runs as a script, it would hide the package of the same name.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

from connect.data import SourceBatch
from connect.testing import SourceTaskTestContext, StoredOffsets
from connectors.datagen import DatagenTask, DatagenTaskConfig
from converters.json import JsonConverter

ROUNDS = 5
QUICKSTARTS = ("inventory", "stock_trades", "users", "orders", "clickstream", "pizza_orders")


def task_of(quickstart: str, *, headers: bool) -> DatagenTask:
    props = {
        "kafka.topic": "rows",
        "quickstart": quickstart,
        "max.interval": "0",
        "random.seed": "1",
        "record.headers": str(headers),
    }
    task = DatagenTask(DatagenTaskConfig.parse(props), SourceTaskTestContext(StoredOffsets()))
    task.start()
    return task


def rate(records: int, poll: Callable[[], SourceBatch | None], use: Callable[[SourceBatch], Any]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start, count = time.process_time(), 0
        while count < records:
            batch = poll()
            assert batch is not None
            use(batch)
            count += len(batch)
        best = min(best, (time.process_time() - start) / count)
    return 1 / best


def main(records: int) -> None:
    converter = JsonConverter(JsonConverter.config_class.parse({"schemas.enable": "false", "converter.type": "value"}))

    def written(batch: SourceBatch) -> None:
        converter.from_connect_column("rows", batch.value)

    print(f"{'':14}{'made':>12}{'rows':>12}{'JSON':>12}{'ready':>12}")
    for quickstart in QUICKSTARTS:
        made = rate(records, task_of(quickstart, headers=False).poll, lambda batch: len(batch.value))
        rows = rate(records, task_of(quickstart, headers=True).poll, list)
        through = rate(records, task_of(quickstart, headers=False).poll, written)
        first = task_of(quickstart, headers=False).poll()
        ready = rate(records, lambda: first, written)  # noqa: B023 - it is called at once
        print(f"{quickstart:14}{made:12,.0f}{rows:12,.0f}{through:12,.0f}{ready:12,.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
