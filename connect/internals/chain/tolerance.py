"""Error handling for records that cannot be processed: retry, skip and report, or fail the task.

:meth:`Tolerance.attempt` runs one stage for one record and retries what may succeed later. A final failure is a
:class:`StageError`; :meth:`Tolerance.give_up` reports it, and raises unless ``errors.tolerance`` allows the record to
be skipped. No record is dropped silently (invariant I4), and none because of an error that is not about a record: a
``ConnectError`` that is neither a ``DataError`` nor a ``RetriableError`` fails the task, and so does a
``RetriableError`` of a converter or a transformation that lasts longer than ``errors.retry.timeout``.
"""

from __future__ import annotations

import enum
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from connect.data import SinkRecord, SourceRecord
from connect.errors import ConnectError, DataError, RetriableError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.stack_trace import error_text, stack_trace

__all__ = [
    "ErrorCounts",
    "ErrorPolicy",
    "Failure",
    "RaisedElsewhere",
    "Reporter",
    "Stage",
    "StageError",
    "StopRequested",
    "Tolerance",
]

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


_CONVERTERS: Final = {
    Stage.KEY_CONVERTER: "key.converter",
    Stage.VALUE_CONVERTER: "value.converter",
    Stage.HEADER_CONVERTER: "header.converter",
}


class StageError(ConnectError):
    """A stage failed for one record; the cause is chained. ``executing`` is the class that failed.

    ``alias`` is the name of a transformation in the configuration.
    """

    def __init__(self, stage: Stage, executing: str, cause: Exception, alias: str | None = None) -> None:
        super().__init__(f"{stage.value} by {executing} failed: {cause}")
        self.stage = stage
        self.executing = executing
        self.cause = cause
        self.alias = alias


class StopRequested(Exception):  # noqa: N818 - it tells of no error
    """The task must stop while a record waits to be retried.

    The record is neither processed nor given up; it comes again.
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that cannot be processed: the stage, the error, and the record as it was before the stage.

    ``error_class`` and ``trace`` are those of the original error, even if it was raised in another process. ``alias``
    is the name of the failed transformation in the configuration.
    """

    stage: Stage
    executing: str
    error: Exception
    record: SourceRecord | SinkRecord | None = None
    raw: RawRecord | None = None
    raised: RaisedElsewhere | None = None
    alias: str | None = None

    @classmethod
    def of_stage(
        cls, error: StageError, record: SourceRecord | SinkRecord | None = None, raw: RawRecord | None = None
    ) -> Failure:
        """Make a failure from an error of a stage."""
        return cls(error.stage, error.executing, error.cause, record, raw, alias=error.alias)

    @property
    def may_pass(self) -> bool:
        """Whether the record would do once something else, such as a schema registry, is there again."""
        is_ours = self.stage in _CONVERTERS or self.stage is Stage.TRANSFORMATION
        return is_ours and isinstance(self.error, RetriableError)

    @property
    def error_class(self) -> str:
        """The dotted path of the error's class."""
        if self.raised is not None:
            return self.raised.error_class
        return f"{type(self.error).__module__}.{type(self.error).__qualname__}"

    @property
    def trace(self) -> str:
        """The full stack trace of the error, causes included."""
        return self.raised.trace if self.raised is not None else stack_trace(self.error)


@dataclass(frozen=True, slots=True)
class RaisedElsewhere:
    """The class and the trace of an error in another process, of which only the text has been passed on."""

    error_class: str
    trace: str


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """The ``errors.*`` keys that decide about a record that cannot be processed. Times are in milliseconds.

    Where -1 is allowed it means no limit.
    """

    tolerates_errors: bool = False
    retry_timeout: int = 0
    retry_delay_max: int = 60_000
    tolerance_limit: int = -1
    tolerance_rate: int = -1


@dataclass(slots=True)
class ErrorCounts:
    """Error counts so far, under the names of Kafka Connect's task error metrics."""

    total_record_errors: int = 0
    total_record_failures: int = 0
    total_records_skipped: int = 0
    total_retries: int = 0
    total_errors_logged: int = 0
    deadletterqueue_produce_requests: int = 0
    deadletterqueue_produce_failures: int = 0
    last_error_timestamp: int = field(default=0, compare=False)
    last_reason: str = field(default="", compare=False)
    """Why the last record was left out; empty if that is unknown."""


class Reporter(Protocol):
    """Reports records that were given up."""

    def report(self, failure: Failure) -> None:
        """Report a failure. The report need not be durable yet."""

    def flush(self) -> None:
        """Make all reports durable. Called before offsets are committed.

        Raises :class:`~connect.errors.RetriableError` if that has not succeeded yet, another error if it never will.
        """


class Tolerance:
    """The error handling of one task. ``wait`` waits for some seconds, or returns ``False`` if the task must stop."""

    def __init__(
        self,
        policy: ErrorPolicy,
        reporters: Sequence[Reporter],
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
        counts: ErrorCounts | None = None,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self.counts = counts or ErrorCounts()
        self.tell = tell
        """Makes the records that were left out so far visible; called now and then."""
        self._policy = policy
        self._reporters = reporters
        self._wait = wait
        self._clock = clock
        self._left_out: deque[float] = deque()

    def attempt(self, stage: Stage, executing: str, call: Callable[[], T], alias: str | None = None) -> T:
        """Return the result of ``call``, retrying after a :class:`RetriableError` for up to ``errors.retry.timeout``.

        Raises :class:`StageError` if it finally fails, and :class:`StopRequested` if the task must stop first. Plugin
        errors that are not about the record, such as rejected credentials, are raised unchanged.
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
                    raise StageError(stage, executing, error, alias) from error
                if not self._wait(max(delay, error.retry_after or 0.0)):
                    raise StopRequested from error
                self.counts.total_retries += 1
            except MemoryError:
                raise  # as in Java, which never tolerates an OutOfMemoryError
            except Exception as error:
                if isinstance(error, ConnectError) and not isinstance(error, DataError):
                    raise  # it is not about the record and would affect every other: no record is skipped because of it
                raise StageError(stage, executing, error, alias) from error

    def give_up(self, failure: Failure) -> None:
        """Report a record that cannot be processed. Raises unless the record may be skipped."""
        self._count(1)
        if failure.may_pass:
            self.counts.total_record_failures += 1
            raise ConnectError(
                f"Tolerance exceeded in error handler: {_described(failure.error)}{_place(failure)}. No record is "
                "skipped because of what may pass; for how long it is tried again says errors.retry.timeout."
            ) from failure.error
        for reporter in self._reporters:
            reporter.report(failure)
        if (exceeded := self._exceeded()) is not None:
            self.counts.total_record_failures += 1
            raise ConnectError(f"{exceeded}: {_described(failure.error)}{_place(failure)}") from failure.error
        self.counts.total_records_skipped += 1
        self.counts.last_reason = f"{_described(failure.error)}{_place(failure)}"

    def leave_out(self, count: int) -> None:
        """Count records that are skipped without a report. Raises unless they may be skipped."""
        if not count:
            return
        self._count(count)
        if (exceeded := self._exceeded(count)) is not None:
            self.counts.total_record_failures += count
            raise ConnectError(f"{exceeded}: {count} more records would be skipped")
        self.counts.total_records_skipped += count

    def _count(self, errors: int) -> None:
        self.counts.total_record_errors += errors
        self.counts.last_error_timestamp = time.time_ns() // 1_000_000

    def _exceeded(self, count: int = 1) -> str | None:
        """Return why this many records may not be skipped now, or ``None`` if they may."""
        policy = self._policy
        if not policy.tolerates_errors:
            return "Tolerance exceeded in error handler"
        now = self._clock()
        self._left_out += [now] * min(count, policy.tolerance_rate + 1 if policy.tolerance_rate >= 0 else 1)
        while self._left_out[0] <= now - _RATE_WINDOW:
            self._left_out.popleft()
        if 0 <= policy.tolerance_limit < self.counts.total_records_skipped + count:
            return f"Tolerance exceeded in error handler: errors.tolerance.limit={policy.tolerance_limit}"
        if 0 <= policy.tolerance_rate < len(self._left_out):
            return f"Tolerance exceeded in error handler: errors.tolerance.rate={policy.tolerance_rate}"
        if policy.tolerance_rate < 0:
            self._left_out.clear()
        return None

    def flush(self) -> None:
        """Make every report durable, before offsets move past the records (invariant I4)."""
        for reporter in self._reporters:
            reporter.flush()

    def _delay(self, tries: int, elapsed: float) -> float | None:
        timeout = self._policy.retry_timeout
        if timeout == 0:
            return None
        longest = self._policy.retry_delay_max / 1000
        delay: float = _FIRST_DELAY * 2 ** min(tries - 1, 32)
        if delay > longest:
            delay = random.uniform(0, longest)  # noqa: S311 - spreads retries, hides nothing
        if timeout < 0:
            return delay
        left = timeout / 1000 - elapsed
        return min(delay, left) if left > 0 else None


def _described(error: Exception) -> str:
    """Return the text of an error, with its class if the text alone says little, as that of a ``KeyError`` does."""
    return error_text(error) if isinstance(error, ConnectError) else f"{type(error).__name__}: {error_text(error)}"


def _place(failure: Failure) -> str:
    """Return where it failed, as far as known: the key that configures the plugin, and the record."""
    known: list[str] = []
    if failure.stage is Stage.TRANSFORMATION:
        known.append(failure.executing if failure.alias is None else f"transforms.{failure.alias}")
    elif (key := _CONVERTERS.get(failure.stage)) is not None:
        known.append(key)
    raw = failure.raw
    if raw is not None and not isinstance(failure.record, SourceRecord):
        known.append(f"record {raw.topic}:{raw.partition}:{raw.offset}")
    return f" ({', '.join(known)})" if known else ""
