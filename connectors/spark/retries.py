"""Loads that Spark has failed: made again some times in a row, by a Java that is started again if it has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from connect.bulk import BulkTaskContext, Progress
from connect.errors import ConnectError, RetriableError
from connectors.spark.session import forget_session, java_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JAVA_ENDED", "Losses"]

logger = logging.getLogger(__name__)
_MOST: Final = 3
_RETRY: Final = 1.0
JAVA_ENDED: Final = (
    "Spark's Java process has ended during a load: it was killed, or had too little memory (spark.driver.memory)."
)


class Losses:
    """Counts the loads that failed in a row, and says what becomes of the next one. Used by the task's thread alone."""

    def __init__(self, context: BulkTaskContext, start: Callable[[], None]) -> None:
        self._context = context
        self._start = start
        self._count = 0

    def forget(self) -> None:
        """Begin to count anew, because a load has succeeded."""
        self._count = 0

    def error(self, spark: SparkSession, failure: ConnectError, *, is_lasting: bool = False) -> ConnectError:
        """What to raise for a load that failed: ``failure`` for good, or that the load is made again.

        It is for good if it ``is_lasting``, or if too many loads have failed in a row. If Java has ended, it is started
        again first.
        """
        self._count += 1
        runs = java_runs(spark)
        if not runs:
            failure = ConnectError(JAVA_ENDED)
        if (runs and is_lasting) or self._count > _MOST:
            return failure
        if not runs:
            logger.warning("%s Starting it again.", JAVA_ENDED)
            self._context.progress(Progress("starting Spark again"))
            forget_session(spark)
            self._start()
        return RetriableError(f"{failure} The load is made again, and nothing is lost.", retry_after=_RETRY)
