"""Spark's jobs, in threads of their own, of works that are decided in the thread of the task.

A *work* is a generator: it yields a job, and is given its result or its error when that has ended. So the works of many
topics advance in one thread, which alone has their state, tells how far they are, and hears that the task is to stop;
the threads of the jobs share nothing but Spark.

If one work fails, the whole load does, for all of its topics are committed together: no other work is begun or goes
on, the jobs that run are cancelled, and the first error is raised once the last of them has ended. A kill at any moment
leaves staging folders that no manifest names, as one job would; the topics of a load are in one manifest or in none.
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

__all__ = ["Job", "Jobs", "Looking", "Work", "width_for"]

T = TypeVar("T")

Job: TypeAlias = Callable[[], Any]
Work: TypeAlias = Generator[Job, Any, T]
"""Yields jobs, is sent their results, and returns its own."""

_WAIT: Final = 0.2
_A_CORE: Final = 4
_MOST: Final = 32


def width_for(cores: int) -> int:
    """How many topics to load at once: most of the time of a small one goes by between its Spark tasks."""
    return min(_MOST, _A_CORE * max(1, cores))


class Looking(Protocol):
    """Tells how far the works are."""

    def look(self) -> None:
        """Tell what there is to tell; called again and again while jobs run."""


class Jobs:
    """Runs the jobs of works, of ``width`` works at once."""

    def __init__(
        self,
        spark: SparkSession,
        context: BulkTaskContext,
        progress: Looking,
        width: int,
        packages: Sequence[str] = (),
    ) -> None:
        """``packages`` are what the executors' Python needs besides what every load does."""
        self._spark = spark
        self._packages = packages
        self.ending = False
        """Whether the works are given up: a job that has not begun its own work need not."""
        self._context = context
        self._progress = progress
        self._width = width
        self._checked = is_local(str(spark.sparkContext.master))
        self._executors = ExecutorWatch(partial(has_executors, spark))

    def run(self, job: Callable[[], T]) -> T:
        """The result of a single job, for which everything else waits."""

        def work() -> Work[T]:
            result: T = yield job
            return result

        return self.run_all([work()])[0]

    def run_all(self, works: Sequence[Work[T]]) -> list[T]:
        """The results of works, in their order; the first error if one fails.

        On a cluster the executors are asked first, once, whether they can do the work: not when the task starts, which
        must not wait for a cluster that is full. Raises :class:`~connect.errors.RetriableError` if the task is to stop.
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
                    ended = wait(running.futures, _WAIT, FIRST_COMPLETED).done
                    self._look()
                    if self._context.stopping():
                        raise RetriableError(
                            "The load was given up because the task stops; its records are loaded when it starts."
                        )
                    running.advance(threads, ended)
            except BaseException as error:
                self.ending = True
                self._end(running)
                if isinstance(error, ExecutorsLostError):
                    # Whoever started it finds that it has ended, as when its Java is killed, and starts another.
                    self._spark.sparkContext.stop()
                raise
        return running.results

    def _look(self) -> None:
        """Tell how far the works are, or that they wait for executors."""
        self._executors.look(time.monotonic())
        if self._executors.missing:
            self._context.progress(Progress("waiting for executors: the cluster of Spark has none for this connector"))
        else:
            self._progress.look()
        if self._executors.lost:
            raise ExecutorsLostError

    def _mark(self) -> None:
        """Mark the jobs of a thread as this connector's, which may share its application with others."""
        # If Java has ended, the job says so.
        with suppress(Exception):
            self._spark.sparkContext.addJobTag(own_tag())
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", own_tag())

    def _end(self, running: _Running) -> None:
        """Cancel what runs, and wait for it."""
        left = {future for future in running.futures if not future.cancel()}
        while left:
            # Again and again, for a job that had not begun is not cancelled; and if Java has ended, so have the jobs.
            with suppress(Exception):
                self._spark.sparkContext.cancelJobsWithTag(own_tag())
            left = wait(left, _WAIT).not_done
        running.close()


class _Running:
    """Works on their way: which wait, which of them each job belongs to, and the results."""

    def __init__(self, works: Sequence[Work[Any]], width: int) -> None:
        self._works = works
        self._waiting = deque(range(len(works)))
        self._width = width
        self.futures: dict[Future[Any], int] = {}
        self._results: dict[int, Any] = {}

    @property
    def results(self) -> list[Any]:
        """The results of all, when all have ended."""
        return [self._results[number] for number in range(len(self._works))]

    def fill(self, threads: ThreadPoolExecutor) -> None:
        """Begin works until as many are under way as may be."""
        while self._waiting and len(self.futures) < self._width:
            number = self._waiting.popleft()
            self._step(threads, number, partial(next, self._works[number]))

    def advance(self, threads: ThreadPoolExecutor, ended: set[Future[Any]]) -> None:
        """Give the works whose jobs have ended what came of these, in the order of the works."""
        for future in sorted(ended, key=self.futures.__getitem__):
            number, error = self.futures.pop(future), future.exception()
            work = self._works[number]
            go_on = partial(work.send, future.result()) if error is None else partial(work.throw, error)
            self._step(threads, number, go_on)
        self.fill(threads)

    def close(self) -> None:
        """Let no work go on."""
        for work in self._works:
            work.close()

    def _step(self, threads: ThreadPoolExecutor, number: int, go_on: Callable[[], Job]) -> None:
        try:
            job = go_on()
        except StopIteration as end:
            self._results[number] = end.value
        else:
            self.futures[threads.submit(job)] = number
