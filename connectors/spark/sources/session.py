"""The Spark session of a source: started with its task, and again if its Java process ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from connect.bulk import Progress
from connect.bulk_source import BulkSourceTaskContext
from connect.errors import ConnectError, RetriableError
from connectors.spark.session import forget_session, java_runs, start_session
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.sources.publishing import RowPublisher

__all__ = ["SourceSession"]

T = TypeVar("T")

logger = logging.getLogger(__name__)
_LOSSES: Final = 2
_RETRY: Final = 1.0
_JAVA_ENDED: Final = (
    "Spark's Java process has ended during a load: it was killed, or had too little memory (spark.driver.memory)."
)


class SourceSession:
    """A session with settings of its own, and what publishes with it. Used by the task's thread alone."""

    def __init__(self, context: BulkSourceTaskContext, access: Access, settings: Mapping[str, str]) -> None:
        self._context = context
        self._access = access
        self._settings = settings
        self._first: SparkSession | None = None
        self._own: SparkSession | None = None
        self._publisher: RowPublisher | None = None
        self._losses = 0

    def start(self) -> None:
        """Start Spark."""
        # pyspark takes half a second to import and must not be there before the task's process is forked.
        from connectors.spark.sources.publishing import RowPublisher  # noqa: PLC0415

        self._first = start_session(self._context.connector_properties, self._context.connector_name, self._access)
        self._own = self._first.newSession()
        for key, value in self._settings.items():
            self._own.conf.set(key, value)
        self._publisher = RowPublisher(self._own, self._context)

    @property
    def spark(self) -> SparkSession:
        """The session, which changes when Java was started again."""
        assert self._own is not None, "the session is started with the task"
        return self._own

    @property
    def publisher(self) -> RowPublisher:
        """What publishes rows with the session."""
        assert self._publisher is not None, "the session is started with the task"
        return self._publisher

    def work(self, load: Callable[[], T]) -> T:
        """The result of a load. If Spark's Java has ended meanwhile, it is started again, and so is the load."""
        self.publisher.progress.begin()
        try:
            result = load()
        except Exception as error:
            if self._first is None or java_runs(self._first):
                raise
            raise self._start_again() from error
        self._losses = 0
        return result

    def stop(self) -> None:
        """Stop Spark."""
        if self._first is not None:
            self._first.stop()

    def _start_again(self) -> ConnectError:
        assert self._first is not None
        self._losses += 1
        forget_session(self._first)
        self._first = self._own = self._publisher = None
        if self._losses > _LOSSES:
            return ConnectError(
                f"{_JAVA_ENDED} That was so {self._losses} times in a row. Nothing is lost; see in the log and in the "
                "machine's own why it ends, and restart the task."
            )
        logger.warning("%s Starting it again.", _JAVA_ENDED)
        self._context.progress(Progress("starting Spark again"))
        self.start()
        return RetriableError(f"{_JAVA_ENDED} It has been started again, and nothing is lost.", retry_after=_RETRY)
