"""Drivers of Spark that are forked from a process with all imports done, which are most of the start of a driver."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any, Final

from connect.crash import CRASH_POINT_VARIABLE
from equipment.scripts import spark_driver, spark_source_driver

__all__ = ["PATIENCE", "Driver", "load_records", "running"]

PATIENCE: Final = 300.0
"""Seconds: on a busy machine the first load after a start of Spark takes two minutes."""
# What tasks import as they start.
_LATER: Final = (
    "pandas",
    "connectors.spark.cluster.executors",
    "connectors.spark.decoding.executor",
    "connectors.spark.delta.target",
    "connectors.spark.iceberg.target",
    "connectors.spark.ledger.target",
    "connectors.spark.loading.loader",
    "connectors.spark.preview",
    "connectors.spark.sql.query",
    "connectors.spark.sql.window_output",
    "connectors.spark.stores.factory",
    "connectors.spark.tables.upsert",
    "pyspark.testing",
)
_PATH: Final = "PYTHONPATH"

Work = Callable[[Mapping[str, Any], Callable[[], None]], None]
"""What a driver does: it gets its order, and a function with which it says that its task has started."""


class Driver:
    """A driver that runs in a process of its own."""

    def __init__(self, work: Work, order: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._told, telling = _forking().Pipe(duplex=False)
        self._process = _forking().Process(target=_work, args=(work, dict(order), dict(environ), telling))
        self._process.start()
        telling.close()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None
        return self._process.pid

    def has_started(self) -> bool:
        """Wait until its task has started; whether it has, and not died before."""
        try:
            self._told.recv_bytes()
        except EOFError:
            return False
        return True

    def wait(self) -> int:
        """Wait until it has ended; with which status, or by which signal, a negative number."""
        self._process.join(PATIENCE)
        status = self._process.exitcode
        assert status is not None, f"the driver still runs after {PATIENCE:.0f} s"
        return status

    def close(self) -> None:
        """Kill it, unless it has ended."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self._told.close()


@contextmanager
def running(
    work: Work, order: Mapping[str, Any], java: Mapping[str, str] | None = None, crash: str | None = None
) -> Iterator[Driver]:
    """A driver during the block, which kills itself at the crash point; without ``java`` it starts its own JVM."""
    driver = Driver(work, order, {**(java or {}), **({CRASH_POINT_VARIABLE: crash} if crash else {})})
    try:
        yield driver
    finally:
        driver.close()


def load_records(order: Mapping[str, Any], java: Mapping[str, str] | None = None, crash: str | None = None) -> int:
    """Run the driver of a sink to its end; its status."""
    with running(spark_driver.run, order, java, crash) as driver:
        return driver.wait()


@cache
def _forking() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([spark_driver.__name__, spark_source_driver.__name__, *_LATER])
    # Python before 3.12 imports nothing that is not on the path that the environment has.
    before = os.environ.get(_PATH)
    os.environ[_PATH] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ[_PATH]
        else:
            os.environ[_PATH] = before
    return context


def _work(work: Work, order: Mapping[str, Any], environ: Mapping[str, str], telling: Connection) -> None:
    # What it starts has the same path.
    os.environ |= {**environ, _PATH: os.pathsep.join(filter(None, sys.path))}
    work(order, lambda: telling.send_bytes(b"started"))
