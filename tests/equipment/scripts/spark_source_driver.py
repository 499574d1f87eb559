"""Runs a Spark source task of files as the worker does, in little: load until there is nothing left.

python spark_source_driver.py '{"bootstrap": ..., "offsets": "FILE", "props": {...}}'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from connectors.spark.sources.files.config import SparkFileSourceConfig
from connectors.spark.sources.files.source import SparkFileSourceTask

sys.path.insert(0, str(Path(__file__).parents[2]))

from equipment.workers.bulk_source_context import BulkSourceContext


def main() -> None:
    order = json.loads(sys.argv[1])
    props = order["props"]
    context = BulkSourceContext(props["name"], order["bootstrap"], props, Path(order["offsets"]))
    task = SparkFileSourceTask(SparkFileSourceConfig.parse(props), context)
    task.start()
    while task.load():
        pass
    task.stop()


if __name__ == "__main__":
    main()
