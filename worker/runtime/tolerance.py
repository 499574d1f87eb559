"""What becomes of a record that cannot be processed: tried again, left out and reported, or the end of the task.

A stage of the processing of one record is run by :meth:`Tolerance.attempt`, which retries what may succeed later. What
still fails is a :class:`StageError`; :meth:`Tolerance.give_up` reports it, and raises unless ``errors.tolerance``
allows the record to be left out. Nothing is dropped in silence (invariant I4), and nothing because of an error that is
about no record: a ``ConnectError`` that is neither a ``DataError`` nor a ``RetriableError`` ends the task.
"""

from __future__ import annotations

import enum
import logging
import random
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from connect.data import SinkRecord, SourceRecord
from connect.errors import ConnectError, DataError, RetriableError
from worker.config.connector import ConnectorConfig

__all__ = [
    "ErrorCounts",
    "Failure",
    "LogReporter",
    "Reporter",
    "Stage",
    "StageError",
    "StopRequested",
    "Tolerance",
    "class_name",
    "stack_trace",
]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_FIRST_DELAY: Final = 0.3
_RATE_WINDOW: Final = 60.0


class Stage(enum.Enum):
    """The stages of Kafka Connect's error handling."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class StageError(ConnectError):
    """A stage failed for one record; the cause is chained. ``executing`` is the class that failed."""

    def __init__(self, stage: Stage, executing: str, cause: Exception) -> None:
        super().__init__(f"{stage.value} by {executing} failed: {cause}")
        self.stage = stage
        self.executing = executing
        self.cause = cause


class StopRequested(Exception):  # noqa: N818 - it tells of no error
    """The task is to stop while a record waits to be tried again: it is neither done nor given up, and comes again."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A consumed record as it was on the topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Failure:
    """One record that cannot be processed: where, why, and the record as it was before the stage."""

    stage: Stage
    executing: str
    error: Exception
    record: SourceRecord | SinkRecord | None = None
    raw: RawRecord | None = None


@dataclass(slots=True)
class ErrorCounts:
    """What went wrong so far, under the names of Kafka Connect's task error metrics."""

    total_record_errors: int = 0
    total_record_failures: int = 0
    total_records_skipped: int = 0
    total_retries: int = 0
    total_errors_logged: int = 0


class Reporter(Protocol):
    """Keeps an account of records that were given up."""

    def report(self, failure: Failure) -> None:
        """Take note of a failure; it need not be durable yet."""

    def flush(self) -> None:
        """Make durable what was reported; called before offsets are committed.

        Raises :class:`~connect.errors.RetriableError` if it is not yet, another error if it will never be.
        """


class Tolerance:
    """The error handling of one task. ``wait`` waits so many seconds, or says ``False`` when the task is to stop."""

    def __init__(
        self,
        config: ConnectorConfig,
        reporters: Sequence[Reporter],
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
        counts: ErrorCounts | None = None,
    ) -> None:
        self.counts = counts or ErrorCounts()
        self._config = config
        self._reporters = reporters
        self._wait = wait
        self._clock = clock
        self._left_out: deque[float] = deque()

    def attempt(self, stage: Stage, executing: str, call: Callable[[], T]) -> T:
        """The result of ``call``, tried again after a :class:`RetriableError` for ``errors.retry.timeout``.

        Raises :class:`StageError` when it has failed, :class:`StopRequested` when the task is to stop before that, and
        what a plugin says of something else than the record, such as refused credentials, as it is.
        """
        started = self._clock()
        tries = 0
        while True:
            try:
                return call()
            except RetriableError as error:
                tries += 1
                delay = self._delay(tries, self._clock() - started)
                if delay is None:
                    raise StageError(stage, executing, error) from error
                if not self._wait(max(delay, error.retry_after or 0.0)):
                    raise StopRequested from error
                self.counts.total_retries += 1
            except Exception as error:
                if isinstance(error, ConnectError) and not isinstance(error, DataError):
                    raise  # it is not about the record, and would be said of every other: nothing is left out for it
                raise StageError(stage, executing, error) from error

    def give_up(self, failure: Failure) -> None:
        """Report a record that cannot be processed; raises unless it may be left out."""
        self.counts.total_record_errors += 1
        for reporter in self._reporters:
            reporter.report(failure)
        if (exceeded := self._exceeded()) is not None:
            self.counts.total_record_failures += 1
            raise ConnectError(f"{exceeded}: {failure.error}{_origin(failure)}") from failure.error
        self.counts.total_records_skipped += 1

    def _exceeded(self) -> str | None:
        """Why a record may not be left out now; ``None`` if it may."""
        config = self._config
        if not config.tolerates_errors:
            return "Tolerance exceeded in error handler"
        now = self._clock()
        self._left_out.append(now)
        while self._left_out[0] <= now - _RATE_WINDOW:
            self._left_out.popleft()
        if 0 <= config.errors_tolerance_limit <= self.counts.total_records_skipped:
            return f"Tolerance exceeded in error handler: errors.tolerance.limit={config.errors_tolerance_limit}"
        if 0 <= config.errors_tolerance_rate < len(self._left_out):
            return f"Tolerance exceeded in error handler: errors.tolerance.rate={config.errors_tolerance_rate}"
        if config.errors_tolerance_rate < 0:
            self._left_out.clear()
        return None

    def flush(self) -> None:
        """Make every report durable, before offsets move past the records (invariant I4)."""
        for reporter in self._reporters:
            reporter.flush()

    def _delay(self, tries: int, elapsed: float) -> float | None:
        timeout = self._config.errors_retry_timeout
        if timeout == 0:
            return None
        longest = self._config.errors_retry_delay_max_ms / 1000
        delay: float = _FIRST_DELAY * 2 ** min(tries - 1, 32)
        if delay > longest:
            delay = random.uniform(0, longest)  # noqa: S311 - spreads retries, hides nothing
        if timeout < 0:
            return delay
        left = timeout / 1000 - elapsed
        return min(delay, left) if left > 0 else None


@dataclass(slots=True)
class LogReporter:
    """Writes failures to the log, as ``errors.log.*`` say."""

    connector: str
    task: int
    config: ConnectorConfig
    counts: ErrorCounts = field(default_factory=ErrorCounts)

    def report(self, failure: Failure) -> None:
        """Write one failure."""
        # With tolerance none the error ends the task and is logged there, once.
        if self.config.errors_log_enable and self.config.tolerates_errors:
            self.counts.total_errors_logged += 1
            logger.error("%s", self.text(failure), exc_info=failure.error)

    def flush(self) -> None:
        """Nothing is held back."""

    def text(self, failure: Failure) -> str:
        """The line for a failure, in Kafka Connect's form."""
        where = _where(failure, with_messages=self.config.errors_log_include_messages)
        return (
            f"Error encountered in task {self.connector}-{self.task}. Executing stage '{failure.stage.value}' "
            f"with class '{failure.executing}'{where}."
        )


def class_name(plugin: object) -> str:
    """The dotted path of a plugin's class."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"


def stack_trace(error: BaseException) -> str:
    """The whole trace of an error, causes included."""
    return "".join(traceback.format_exception(error))


def _origin(failure: Failure) -> str:
    raw = failure.raw
    if raw is None or isinstance(failure.record, SourceRecord):
        return ""
    return f" (record {raw.topic}:{raw.partition}:{raw.offset})"


def _where(failure: Failure, *, with_messages: bool) -> str:
    if (raw := failure.raw) is not None and not isinstance(failure.record, SourceRecord):
        return (
            f", where consumed record is {{topic='{raw.topic}', partition={raw.partition}, offset={raw.offset}, "
            f"timestamp={raw.timestamp}, timestampType={raw.timestamp_type}}}"
        )
    if with_messages and failure.record is not None:
        return f", where source record is = {failure.record}"
    return ""
