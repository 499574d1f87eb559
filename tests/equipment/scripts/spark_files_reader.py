"""Reads folders of files with Spark, in its own process: python spark_files_reader.py ORDER.

ORDER is JSON: a list of {"source": "csv", "options": {...}, "place": ..., "columns": [...]}, whose columns are SQL. The
rows of each are the last line of the output, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.stores.access import store_access

__all__: list[str] = []


def main() -> None:
    orders: list[dict[str, Any]] = json.loads(sys.argv[1])
    props = {"store.url": orders[0]["place"], "format.class": "AvroFormat", "spark.sql.session.timeZone": "UTC"}
    spark = start_session(props, "reader", store_access(StoreOptions.parse(props)))
    found = []
    for order in orders:
        reader = spark.read.format(order["source"]).options(**order.get("options", {}))
        frame = reader.option("recursiveFileLookup", "true").load(order["place"])
        found.append([list(row) for row in frame.selectExpr(*order["columns"]).collect()])
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
