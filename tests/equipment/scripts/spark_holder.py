"""Starts a Spark application that does nothing but occupy its executors, and ends with its input.

python spark_holder.py '{"spark.master": ...}'

It prints a line when it has its executors.
"""

from __future__ import annotations

import json
import sys

from connectors.spark.session import start_session
from connectors.spark.stores.access import Access


def main() -> None:
    spark = start_session(json.loads(sys.argv[1]), "holder", Access())
    spark.sparkContext.parallelize(range(2), 2).count()
    print("holding", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
