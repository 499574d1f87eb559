"""A small Spark, for tests that start it often."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from equipment.scripts import spark_driver, spark_java
from equipment.workers.spark_classes import ARCHIVE_OPTIONS, make_archive

__all__ = [
    "COMPILING_SPARK",
    "DRIVER",
    "SMALL_DELTA",
    "SMALL_JAVA",
    "SMALL_SPARK",
    "SPARK_ENVIRON",
    "end_spark",
    "prepare_spark",
    "sink_props",
    "spark_java_for",
]

DRIVER: Final = Path(spark_driver.__file__)
"""The script of a process that loads a topic as the worker does."""

_JAVA: Final = Path(spark_java.__file__)
# Hadoop starts thousands of little processes, such as chmod: without VFORK each of them is two. With the quick compiler
# alone there is too little room for code by default, and what is thrown away is needed again. Each time that the room
# for classes grows beyond a threshold, 21 MB at first, all of the heap is collected: ten times until Spark has its
# classes. They come from pinned jars: the compiler has written no code that would have to be verified again.
SMALL_JAVA: Final = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:-UsePerfData -XX:MetaspaceSize=384m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Djdk.lang.Process.launchMechanism=VFORK"
)
"""The options of a Spark JVM that should start quickly."""
# Compiling code for each of a few small loads takes longer than it saves.
_SPARK_OPTIONS: Final = f"{SMALL_JAVA} -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"
SPARK_ENVIRON: Final = {
    "SPARK_SUBMIT_OPTS": f"{_SPARK_OPTIONS} {ARCHIVE_OPTIONS}",
    "SPARK_LAUNCHER_OPTS": SMALL_JAVA,
}
"""The environment in which every Spark JVM is a small one, whoever starts it."""
SMALL_SPARK: Final = {"spark.master": "local[2]", "spark.driver.memory": "512m"}
COMPILING_SPARK: Final = {
    **SMALL_SPARK,
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""A small Spark that compiles code for each query, as users' Sparks do."""
SMALL_DELTA: Final = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}
"""Additional settings for Delta logs with few entries: each read of a log is a query."""


def prepare_spark() -> None:
    """Prepare what makes a small Spark start quickly, before the first one starts."""
    make_archive(_SPARK_OPTIONS)


def sink_props(store: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a Spark sink that loads JSON into the store of these keys."""
    return {
        **store,
        "key.converter": "converters.byte_array.ByteArrayConverter",
        "value.converter": "converters.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        **SMALL_SPARK,
    }


@contextmanager
def spark_java_for(props: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment of drivers that share one JVM, which survives them; starting it would take most of their time."""
    with subprocess.Popen(
        [sys.executable, str(_JAVA), json.dumps(dict(props))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        environ: dict[str, str] = json.loads(process.stdout.readline())
        yield environ


def end_spark() -> None:
    """End the JVM of this process, if Spark has started one: it has the jars and settings of its first session."""
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext  # noqa: PLC0415 - most tests never need it
    from pyspark.sql import SparkSession, SQLContext  # noqa: PLC0415

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    with warnings.catch_warnings():
        # PySpark and py4j leave sockets and pipes to the garbage collector, which would report them in another test.
        warnings.simplefilter("ignore")
        with suppress(Exception):
            if SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
        _end_gateway(gateway)
        del gateway
        gc.collect()


def _end_gateway(gateway: Any) -> None:
    with suppress(Exception):
        gateway.shutdown()
    if (process := getattr(gateway, "proc", None)) is not None:
        process.kill()
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(OSError):
                stream.close()
