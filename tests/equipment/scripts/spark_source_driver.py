"""Runs Spark source tasks as the worker does, in small: one after the other, each until there is nothing left.

python spark_source_driver.py '{"bootstrap": ..., "session": {...}, "sources": [{"class": ..., "props": {...}, ...}]}'

A source has ``offsets``, a file, or ``transactions``, the topic of its offsets. ``first`` are SQL statements to run
before it loads, and ``then`` those to run when it has drained for the first time. In them, ``c`` is the Iceberg catalog
in the folder ``warehouse``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from connect.bulk_source import BulkSourceTask
from connect.errors import RetriableError
from connectors.spark.session import start_session
from connectors.spark.sources.files.source import SparkFileSourceConnector
from connectors.spark.sources.jdbc.source import SparkJdbcSourceConnector
from connectors.spark.sources.tables.source import SparkTableSourceConnector
from connectors.spark.stores.access import Access

sys.path.insert(0, str(Path(__file__).parents[2]))

from equipment.scripts.spark_driver import stop_leftover
from equipment.workers.bulk_source_context import BulkSourceContext
from equipment.workers.claimed_offsets import ClaimedOffsets

_CLASSES: Final[Mapping[str, Any]] = {
    each.__name__: each for each in (SparkFileSourceConnector, SparkJdbcSourceConnector, SparkTableSourceConnector)
}


def drain(task: BulkSourceTask[Any]) -> None:
    """Load until there is nothing left."""
    while True:
        try:
            if not task.load():
                return
        except RetriableError as error:
            print(f"A load is made again: {error}", file=sys.stderr)


def run_source(session: Any, bootstrap: str, source: Mapping[str, Any]) -> None:
    """Run one source to its end."""
    props, topic = source["props"], source.get("transactions")
    sql = session.newSession()
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}.items():
        sql.conf.set(f"spark.sql.catalog.c{key}", value)
    sql.conf.set("spark.sql.catalog.c.warehouse", source.get("warehouse", "/none"))
    execute(sql, source.get("first", ()))
    transactions = ClaimedOffsets(bootstrap, props["name"], topic) if topic else None
    offsets = None if topic else Path(source["offsets"])
    connector = _CLASSES[source["class"]]
    context = BulkSourceContext(props["name"], bootstrap, props, offsets, transactions)
    task = connector.task_class(connector.task_class.config_class.parse(props), context)
    task.start()
    drain(task)
    if source.get("then"):
        execute(sql, source["then"])
        drain(task)


def execute(sql: Any, statements: Iterable[str]) -> None:
    """Run SQL statements."""
    for statement in statements:
        sql.sql(statement)


def run(order: Mapping[str, Any], started: Callable[[], None]) -> None:
    """Run the sources; ``started`` is called when the session has started."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        stop_leftover()
    session = start_session(order["session"], "sources", Access())
    started()
    for source in order["sources"]:
        run_source(session, order["bootstrap"], source)
    session.stop()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]), lambda: None)
