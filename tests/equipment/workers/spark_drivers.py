"""Drivers of Spark that are forked from a process with all imports done, which are most of the start of a driver."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Final

from connect.internals.crash import CRASH_POINT_VARIABLE
from equipment.scripts import spark_driver
from equipment.workers.nursery import Nursery

__all__ = ["PATIENCE", "Driver", "load_records", "running"]

PATIENCE: Final = 300.0
"""Seconds: on a busy machine the first load after a start of Spark takes two minutes."""
# What tasks import as they start.
_LATER: Final = (
    "pandas",
    "connectors.spark.cluster.executors",
    "connectors.spark.decoding.executor",
    "connectors.spark.sink.delta.target",
    "connectors.spark.sink.iceberg.target",
    "connectors.spark.sink.ledger.target",
    "connectors.spark.sink.loading.loader",
    "connectors.spark.sink.preview",
    "connectors.spark.sink.sql.query",
    "connectors.spark.sink.sql.window_output",
    "connectors.spark.stores.factory",
    "connectors.spark.sink.tables.upsert",
    "pyspark.testing",
)
_PATH: Final = "PYTHONPATH"
_TELLING: Final = 3
_STARTED: Final = b"started"

Work = Callable[[Mapping[str, Any], Callable[[], None]], None]
"""What a driver does: it gets its order, and a function with which it says that its task has started."""


class Driver:
    """A driver that runs in a process of its own."""

    def __init__(self, work: Work, order: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        arguments = ["driver", work.__module__, work.__qualname__, json.dumps(dict(order))]
        # What it starts has the same path.
        given = {**os.environ, **environ, _PATH: _path()}
        started, starting = os.pipe()
        with open(os.devnull) as nothing:  # noqa: PTH123 - a device
            self._process = _nursery().fork(f"{__name__}:_drive", arguments, given, [nothing.fileno(), 2, 2, starting])
        os.close(starting)
        self._started = open(started, "rb", buffering=0)  # noqa: PTH123, SIM115 - until the driver is closed

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def has_started(self) -> bool:
        """Wait until its task has started; whether it has, and not died before."""
        return bool(self._started.read(len(_STARTED)))

    def wait(self) -> int:
        """Wait until it has ended; with which status, or by which signal, a negative number."""
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver still runs after {PATIENCE:.0f} s") from None

    def close(self) -> None:
        """Kill it, unless it has ended."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._started.close()


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
def _nursery() -> Nursery:
    return Nursery([__name__, *_LATER], {_PATH: _path()})


def _path() -> str:
    return os.pathsep.join(filter(None, sys.path))


def _drive() -> None:
    _, module, name, order = sys.argv
    work: Work = getattr(import_module(module), name)
    work(json.loads(order), _tell)


def _tell() -> None:
    os.write(_TELLING, _STARTED)
