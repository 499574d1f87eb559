"""Starts a Spark JVM for drivers that come and go, and ends with its input.

python spark_java.py '{"spark.master": ...}'

It prints a line of JSON: the environment in which a driver finds this JVM instead of starting its own.
"""

from __future__ import annotations

import json
import sys

from connectors.spark.session import start_session
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import store_access


def main() -> None:
    props = json.loads(sys.argv[1])
    spark = start_session(props, "java", store_access(SparkSinkConfig.parse(props)))
    found = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    spark.stop()
    environ = {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}
    print(json.dumps(environ), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
