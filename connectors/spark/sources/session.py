"""The Spark session of a source: started with its task, and restarted if its Java process ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from connect.bulk_source import BulkSourceTaskContext
from connect.errors import ConnectError
from connectors.spark.errors import failure_cause
from connectors.spark.retries import LoadRetries
from connectors.spark.session import start_session
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.sources.row_publisher import RowPublisher

__all__ = ["SourceSession"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


class SourceSession:
    """A session with its own settings, and the publisher that uses it. Used only by the task's thread."""

    def __init__(self, context: BulkSourceTaskContext, access: Access, settings: Mapping[str, str]) -> None:
        self._context = context
        self._access = access
        self._settings = settings
        self._first: SparkSession | None = None
        self._own: SparkSession | None = None
        self._publisher: RowPublisher | None = None
        self._retries = LoadRetries(context, self.start)

    def start(self) -> None:
        """Start Spark."""
        # Importing pyspark takes half a second and must not happen before the task's process is forked.
        from connectors.spark.sources.row_publisher import RowPublisher  # noqa: PLC0415

        self._first = start_session(self._context.connector_properties, self._context.connector_name, self._access)
        self._own = self._first.newSession()
        for key, value in self._settings.items():
            self._own.conf.set(key, value)
        self._publisher = RowPublisher(self._own, self._context)

    @property
    def spark(self) -> SparkSession:
        """The session, which is a new one after Java was restarted."""
        assert self._own is not None, "the session is started with the task"
        return self._own

    @property
    def publisher(self) -> RowPublisher:
        """The publisher that uses the session."""
        assert self._publisher is not None, "the session is started with the task"
        return self._publisher

    def work(self, load: Callable[[], T]) -> T:
        """Run a load and return its result. Spark's errors may be transient: up to a number of times in a row, they
        make the load run again.

        If the Java process has ended, it is restarted.
        """
        self.publisher.progress.begin()
        try:
            self.publisher.claim()
            result = load()
        except ConnectError:
            self.publisher.release()
            raise
        except Exception as error:
            self.publisher.release()
            assert self._first is not None
            failure = ConnectError(f"Spark failed to send the rows: {failure_cause(error)}")
            raise self._retries.error(self._first, failure) from error
        self._retries.forget()
        return result

    def stop(self) -> None:
        """Stop Spark."""
        if self._first is not None:
            self._first.stop()
