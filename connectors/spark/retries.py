"""Repeats loads that failed in Spark, a few times in a row, and restarts Spark's Java if it has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from connect.bulk import BulkTaskContext, Progress
from connect.errors import ConnectError, RetriableError
from connectors.spark.session import forget_session, java_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JAVA_ENDED", "LoadRetries"]

logger = logging.getLogger(__name__)
_MOST_RETRIES: Final = 3
_RETRY_SECONDS: Final = 1.0
JAVA_ENDED: Final = (
    "Spark's Java process ended during a load: it was killed, or ran out of memory (spark.driver.memory)."
)


class LoadRetries:
    """Counts consecutive failed loads and decides whether to try again. Used only by the task's thread."""

    def __init__(self, context: BulkTaskContext, start: Callable[[], None]) -> None:
        self._context = context
        self._start = start
        self._count = 0

    def forget(self) -> None:
        """Reset the count after a successful load."""
        self._count = 0

    def error(self, spark: SparkSession, failure: ConnectError, *, is_lasting: bool = False) -> ConnectError:
        """Return the error to raise for a failed load: ``failure`` itself, or a request to retry.

        The failure is final if it ``is_lasting``, or if too many loads have failed in a row. If Java has ended, it is
        restarted first.
        """
        self._count += 1
        runs = java_runs(spark)
        if not runs:
            failure = ConnectError(JAVA_ENDED)
        if (runs and is_lasting) or self._count > _MOST_RETRIES:
            return failure
        if not runs:
            logger.warning("%s Restarting it.", JAVA_ENDED)
            self._context.progress(Progress("restarting Spark"))
            forget_session(spark)
            self._start()
        return RetriableError(f"{failure} The load is repeated; nothing is lost.", retry_after=_RETRY_SECONDS)
