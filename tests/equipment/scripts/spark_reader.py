"""Reads a table with Spark, in its own process: python spark_reader.py ORDER.

ORDER is JSON: {"props": ..., "source": "parquet", "place": ..., "columns": [...]}. The rows are the last line of the
output, as JSON.
"""

from __future__ import annotations

import json
import sys

from connectors.spark.options.store import StoreOptions
from connectors.spark.session import start_session
from connectors.spark.stores.access import store_access


def main() -> None:
    order = json.loads(sys.argv[1])
    props = order["props"]
    spark = start_session(props, "reader", store_access(StoreOptions.parse(props)))
    rows = spark.read.format(order["source"]).load(order["place"]).select(*order["columns"]).collect()
    spark.stop()
    print(json.dumps([list(row) for row in rows]))


if __name__ == "__main__":
    main()
