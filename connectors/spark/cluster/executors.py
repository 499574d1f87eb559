"""Checks the executors of a cluster: whether there are any, and whether their Python has what loads need."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.errors import ConnectError
from connect.internals.chain.stack_trace import error_text
from connectors.spark.cluster.code import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Answer",
    "ExecutorWatch",
    "ExecutorsLostError",
    "check_executors",
    "has_executors",
    "own_tag",
    "unfit_executors",
]

logger = logging.getLogger(__name__)
_TICK_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 5.0
_LOST_SECONDS: Final = 120.0
_NEEDED: Final = ("pyarrow", "orjson", "confluent_kafka", "connectors.spark.decoding.executor")
_MOST_TASKS: Final = 32
_VERSIONS: Final = re.compile(
    r"PYTHON_VERSION_MISMATCH\] Python in worker has different version: (\S+) than that in driver: (\S+?)[,.]"
)
_NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
_REMEDY: Final = (
    "Install Sluice for the same Python on all machines of the cluster and name it with spark.pyspark.python, or send "
    "an environment with spark.archives (docs/spark/cluster.md tells how)."
)


class Answer(NamedTuple):
    """One executor's answer about its Python."""

    host: str
    program: str
    missing: tuple[str, ...]
    """The packages that it cannot import, each with Python's reason."""


class ExecutorsLostError(Exception):
    """The Spark application has lost its executors and will get no others; it has been ended."""

    def __init__(self) -> None:
        super().__init__("Spark's executors are gone, and its master gives no others")


class ExecutorWatch:
    """Decides, from repeated looks at a session, whether its work is waiting for executors, and whether they are lost
    for good.

    A busy cluster gives an application executors when some are free. A master that was restarted and no longer knows
    the application never will: then another application must be started.
    """

    def __init__(self, there: Callable[[], bool]) -> None:
        """``there`` says whether any executor exists right now."""
        self._there = there
        self._due = 0.0
        self.missing = False
        """Whether there has been no executor for some seconds."""
        self.lost = False
        """Whether all executors have been gone for two minutes."""
        self._had = False
        self._since: float | None = None

    def look(self, now: float) -> None:
        """Check for an executor, unless that was done a moment ago; the clock counts seconds."""
        if now < self._due:
            return
        self._due = now + _TICK_SECONDS
        try:
            there = self._there()
        except Exception:
            # Java has ended, which the jobs themselves report.
            return
        if there:
            if self.missing:
                logger.info("The Spark cluster has executors for this connector again.")
            self.missing, self.lost, self._had, self._since = False, False, True, None
            return
        self._since = now if self._since is None else self._since
        waited = now - self._since
        if waited >= _PATIENCE_SECONDS and not self.missing:
            self.missing = True
            logger.warning(
                "The load is waiting for executors, because the Spark cluster has none for this connector: "
                "all cores are in use, its workers are down, or its master cannot be reached. The load "
                "continues when executors become available."
            )
        self.lost = self._had and waited >= _LOST_SECONDS


def check_executors(spark: SparkSession, packages: Sequence[str] = ()) -> None:
    """Run a small job that asks the executors what they have; does nothing if the master is local.

    ``packages`` are needed in addition to those of every load. Raises :class:`~connect.errors.ConnectError` with the
    remedy if the executors cannot do the work.
    """
    context = spark.sparkContext
    if is_local(str(context.master)):
        return
    count = max(1, min(_MOST_TASKS, context.defaultParallelism))
    try:
        answers = context.parallelize(range(count), count).mapPartitions(_question((*_NEEDED, *packages))).collect()
    except Exception as error:
        if (reason := _unfit(error_text(error))) is None:
            raise
        raise ConnectError(f"{reason} {_REMEDY}") from error
    if (reason := unfit_executors([Answer(*answer) for answer in answers])) is not None:
        raise ConnectError(reason)


def unfit_executors(answers: Iterable[Answer]) -> str | None:
    """Return what is missing and where, with the remedy; ``None`` if nothing is missing."""
    lacking = sorted({answer for answer in answers if answer.missing})
    if not lacking:
        return None
    lacks = "; ".join(f"{answer.program} on {answer.host} lacks {', '.join(answer.missing)}" for answer in lacking)
    return f"The executors of Spark cannot do the work: {lacks}. {_REMEDY}"


def has_executors(spark: SparkSession) -> bool:
    """Return whether there is any executor right now; with a local master, the driver is one."""
    context: Any = spark.sparkContext
    return is_local(context.master) or context._jsc.sc().getExecutorMemoryStatus().size() > 1


def own_tag() -> str:
    """Return the tag for this process's jobs; other connectors may use the same application."""
    return f"sluice-{os.getpid()}"


def _unfit(text: str) -> str | None:
    if (found := _VERSIONS.search(text)) is not None:
        return f"The executors of Spark run Python {found[1]}, and this worker runs Python {found[2]}."
    if (program := _NO_PROGRAM.search(text)) is not None:
        return f"The machines of the cluster have no Python at {program[1]}."
    return None


def _question(needed: tuple[str, ...]) -> Callable[[Iterable[int]], Iterator[tuple[str, str, tuple[str, ...]]]]:
    """Return a function that Spark sends by its code, not by name: Sluice may be missing where it arrives."""

    def ask(_: Iterable[int]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        import importlib  # noqa: PLC0415 - it runs elsewhere
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415

        missing = []
        for name in needed:
            try:
                importlib.import_module(name)
            except Exception as error:
                missing.append(f"{name} ({type(error).__name__}: {error})")
        yield socket.gethostname(), sys.executable, tuple(missing)

    return ask
