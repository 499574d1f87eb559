"""Runs Spark jobs in separate threads, for work whose decisions are made in the task's thread.

A *work* is a generator: it yields a job, and is sent the job's result or error once the job has ended. So the works of
many topics advance in a single thread, which alone holds their state, reports progress, and notices when the task is to
stop; the threads that run the jobs share nothing but Spark.

If one work fails, the whole load fails, for all topics, because they are committed together: no other work starts or
continues, running jobs are cancelled, and the first error is raised once the last job has ended. A kill at any moment
leaves staging folders that no manifest names, as with a single job; the topics of a load are in one manifest or in
none.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from connect.bulk import BulkTaskContext, Progress
from connect.errors import RetriableError
from connectors.spark.cluster.code import is_local
from connectors.spark.cluster.executors import (
    ExecutorsLostError,
    ExecutorWatch,
    check_executors,
    has_executors,
    own_tag,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Job", "Jobs", "ProgressReporter", "Work", "width_for"]

T = TypeVar("T")

Job: TypeAlias = Callable[[], Any]
Work: TypeAlias = Generator[Job, Any, T]
"""Yields jobs, is sent their results, and returns its own."""

_WAIT_SECONDS: Final = 0.2
_A_CORE: Final = 4
_MOST_TOPICS: Final = 32


def width_for(cores: int) -> int:
    """Return how many topics to load at once: a small topic spends most of its time between Spark tasks."""
    return min(_MOST_TOPICS, _A_CORE * max(1, cores))


class ProgressReporter(Protocol):
    """Reports the progress of works."""

    def look(self) -> None:
        """Report current progress; called repeatedly while jobs run."""


class Jobs:
    """Runs the jobs of up to ``width`` works at once."""

    def __init__(
        self,
        spark: SparkSession,
        context: BulkTaskContext,
        progress: ProgressReporter,
        width: int,
        packages: Sequence[str] = (),
    ) -> None:
        """``packages`` are what the executors' Python needs in addition to what every load needs."""
        self._spark = spark
        self._packages = packages
        self.ending = False
        """Whether the works are being abandoned: a job that has not begun its own work yet may skip it."""
        self._context = context
        self._progress = progress
        self._width = width
        self._checked = is_local(str(spark.sparkContext.master))
        self._executors = ExecutorWatch(partial(has_executors, spark))

    def run(self, job: Callable[[], T]) -> T:
        """Run a single job while everything else waits, and return its result."""

        def work() -> Work[T]:
            result: T = yield job
            return result

        return self.run_all([work()])[0]

    def run_all(self, works: Sequence[Work[T]]) -> list[T]:
        """Run works and return their results in order, or raise the first error.

        On a cluster, the executors are first asked, once, whether they can do the work; not when the task starts,
        because a task must not wait for a busy cluster. Raises :class:`~connect.errors.RetriableError` if the task is
        to stop.
        """
        if not self._checked:
            self._context.progress(Progress("asking the executors"))
            self._run_all([self._check()])
            self._checked = True
        return self._run_all(works)

    def _check(self) -> Work[None]:
        yield partial(check_executors, self._spark, self._packages)

    def _run_all(self, works: Sequence[Work[T]]) -> list[T]:
        running = _Running(works, self._width)
        self.ending = False
        with ThreadPoolExecutor(min(self._width, len(works)) or 1, initializer=self._mark) as threads:
            try:
                running.fill(threads)
                while running.futures:
                    ended = wait(running.futures, _WAIT_SECONDS, FIRST_COMPLETED).done
                    self._look()
                    if self._context.stopping():
                        raise RetriableError(
                            "The load was cancelled because the task is stopping; its records will be loaded "
                            "when it starts again."
                        )
                    running.advance(threads, ended)
            except BaseException as error:
                self.ending = True
                self._end(running)
                if isinstance(error, ExecutorsLostError):
                    # The caller notices that the application has ended, just as when its Java is killed, and starts
                    # another.
                    self._spark.sparkContext.stop()
                raise
        return running.results

    def _look(self) -> None:
        """Report how far the works are, or that they are waiting for executors."""
        self._executors.look(time.monotonic())
        if self._executors.missing:
            self._context.progress(Progress("waiting for executors: the cluster of Spark has none for this connector"))
        else:
            self._progress.look()
        if self._executors.lost:
            raise ExecutorsLostError

    def _mark(self) -> None:
        """Tag the jobs of a thread as this connector's, because others may share its application."""
        # If Java has ended, the job itself fails.
        with suppress(Exception):
            self._spark.sparkContext.addJobTag(own_tag())
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", own_tag())

    def _end(self, running: _Running) -> None:
        """Cancel running jobs, and wait for them."""
        left = {future for future in running.futures if not future.cancel()}
        while left:
            # Repeated, because a cancellation misses jobs that have not begun; if Java has ended, so have the jobs.
            with suppress(Exception):
                self._spark.sparkContext.cancelJobsWithTag(own_tag())
            left = wait(left, _WAIT_SECONDS).not_done
        running.close()


class _Running:
    """The works in progress: those waiting, the work each job belongs to, and the results."""

    def __init__(self, works: Sequence[Work[Any]], width: int) -> None:
        self._works = works
        self._waiting = deque(range(len(works)))
        self._width = width
        self.futures: dict[Future[Any], int] = {}
        self._results: dict[int, Any] = {}

    @property
    def results(self) -> list[Any]:
        """The results, once all works have ended."""
        return [self._results[number] for number in range(len(self._works))]

    def fill(self, threads: ThreadPoolExecutor) -> None:
        """Start works until the limit is reached."""
        while self._waiting and len(self.futures) < self._width:
            number = self._waiting.popleft()
            self._step(threads, number, partial(next, self._works[number]))

    def advance(self, threads: ThreadPoolExecutor, ended: set[Future[Any]]) -> None:
        """Advance the works whose jobs have ended, in order."""
        for future in sorted(ended, key=self.futures.__getitem__):
            number, error = self.futures.pop(future), future.exception()
            work = self._works[number]
            go_on = partial(work.send, future.result()) if error is None else partial(work.throw, error)
            self._step(threads, number, go_on)
        self.fill(threads)

    def close(self) -> None:
        """Close all works."""
        for work in self._works:
            work.close()

    def _step(self, threads: ThreadPoolExecutor, number: int, go_on: Callable[[], Job]) -> None:
        try:
            job = go_on()
        except StopIteration as end:
            self._results[number] = end.value
        else:
            self.futures[threads.submit(job)] = number
