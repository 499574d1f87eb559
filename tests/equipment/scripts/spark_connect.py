"""Reads and writes connectors as data sources through a Spark Connect server, which it starts.

python spark_connect.py '{"read": {...}, "write": {...}}'

Each value has the options of a connector. The script prints the rows that it has read, and the schema, as lines.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    orders = json.loads(sys.argv[1])
    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    found = spark.read.format("sluice").options(**orders["read"]).load()
    print(found.schema.simpleString())
    for row in found.orderBy("id").collect():
        print(row["id"])
    found.write.format("sluice").options(**orders["write"]).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main()
