"""One Spark JVM for the sessions of many test files: it is warm after the first of them."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import connectors.spark
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors.spark.session import start_session
from connectors.spark.stores.access import Access
from equipment.workers.small_spark import SMALL_SPARK, end_spark

__all__ = ["SharedJava", "all_jars"]

_SPARK: Final = Path(connectors.spark.__file__).parent


def all_jars() -> list[Path]:
    """The jars of every table format, store, file format and database."""
    locked = {jar for lock in sorted(_SPARK.rglob("*.jars")) for jar in read_lock(lock)}
    return [*resolve_jars(sorted(locked, key=str), home=sluice_home()), *sorted(_SPARK.rglob("*.jar"))]


class SharedJava:
    """A JVM in which the sessions of this process are started, one after the other, with the jars of all of them.

    A file whose tests end the JVM, or check how it was started, has its own.
    """

    def __init__(self) -> None:
        self._gateway: Any = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Start the sessions inside the block in this JVM; the last one ends with the block."""
        from pyspark import SparkContext  # noqa: PLC0415 - most tests never need it

        if self._gateway is None or self._gateway.proc.poll() is not None:
            self._start()
        SparkContext._gateway, SparkContext._jvm = self._gateway, self._gateway.jvm
        try:
            yield
        finally:
            if SparkContext._gateway is self._gateway:
                self._take_back()

    def close(self) -> None:
        """End it."""
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        if self._gateway is not None:
            SparkContext._gateway, SparkContext._jvm = self._gateway, self._gateway.jvm
            end_spark()

    def _start(self) -> None:
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        settings = {**SMALL_SPARK, "spark.driver.memory": "1g", "spark.jars": ",".join(map(str, all_jars()))}
        start_session(settings, "shared", Access()).stop()
        self._gateway = SparkContext._gateway

    def _take_back(self) -> None:
        from pyspark import SparkContext  # noqa: PLC0415 - as above

        with warnings.catch_warnings():
            # Objects that PySpark leaves to the garbage collector must not be reported in another test.
            warnings.simplefilter("ignore")
            if SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()
            # The next session may reach the same store with other keys.
            self._gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()
            SparkContext._gateway = SparkContext._jvm = None
            gc.collect()
