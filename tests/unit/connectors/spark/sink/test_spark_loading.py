"""Several topics loaded at once: their works and jobs, and the tables that they share."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Event, Lock
from types import SimpleNamespace
from typing import Any

import pytest

from connect.data import Schema
from connect.errors import DataError, RetriableError
from connectors.spark.jobs.jobs import Jobs, Work, width_for
from connectors.spark.sink.loading.loader import agreed_tables, disagreeing_loads

DEADLINE = 60


class Session:
    """A Spark whose jobs wait until they are cancelled, a context, and progress that nobody looks at."""

    def __init__(self) -> None:
        self.cancelled = Event()
        self.tags: list[str] = []
        self.stop = False
        self.sparkContext = SimpleNamespace(
            master="local",
            addJobTag=self.tags.append,
            setLocalProperty=lambda *_: None,
            cancelJobsWithTag=self._cancel,
        )

    def _cancel(self, tag: str) -> None:
        assert tag in self.tags
        self.cancelled.set()

    def stopping(self) -> bool:
        return self.stop

    def look(self) -> None:
        """Nothing is to be seen."""

    def endless(self) -> None:
        """A job that only ends when it is cancelled."""
        assert self.cancelled.wait(DEADLINE)
        raise RuntimeError("Job 7 cancelled")

    def jobs(self, width: int) -> Jobs:
        session: Any = self
        return Jobs(session, session, session, width)


def work(*jobs: Callable[[], Any]) -> Work[list[Any]]:
    """The results of some jobs, one after the other."""
    results: list[Any] = []
    for job in jobs:
        result = yield job
        results += [result]
    return results


def test_works_advance_at_once_and_answer_in_their_order() -> None:
    meeting = Barrier(3)
    works = [work(lambda: meeting.wait(DEADLINE) >= 0, lambda number=number: number) for number in range(3)]
    assert Session().jobs(3).run_all(works) == [[True, 0], [True, 1], [True, 2]]


def test_no_more_works_are_under_way_than_may_be() -> None:
    lock, under_way, most = Lock(), 0, 0

    def begin() -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)

    def end() -> None:
        nonlocal under_way
        with lock:
            under_way -= 1

    assert len(Session().jobs(4).run_all([work(begin, end) for _ in range(50)])) == 50
    assert most <= 4
    assert Session().jobs(4).run_all([]) == []


def test_a_single_job_gives_its_result_or_its_error() -> None:
    jobs = Session().jobs(8)
    assert jobs.run(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        jobs.run(lambda: 1 // 0)


def test_a_work_may_go_on_after_the_error_of_a_job() -> None:
    def patient() -> Work[str]:
        try:
            yield lambda: 1 // 0
        except ZeroDivisionError:
            answer: str = yield lambda: "done by another job"
        return answer

    assert Session().jobs(1).run_all([patient()]) == ["done by another job"]


def test_the_first_error_ends_all_works() -> None:
    session = Session()
    ended: list[str] = []

    def watched(name: str, job: Callable[[], Any]) -> Work[None]:
        try:
            yield job
        finally:
            ended.append(name)

    def refuse() -> None:
        raise DataError("Bad record")

    works = [watched("endless", session.endless), watched("bad", refuse), watched("never begun", session.endless)]
    jobs = session.jobs(2)
    with pytest.raises(DataError, match="Bad record"):
        jobs.run_all(works)
    assert session.cancelled.is_set()
    assert ended == ["bad", "endless"]
    assert jobs.ending
    assert not jobs.run(lambda: jobs.ending), "those of the next load begin anew"


def test_a_stop_cancels_the_jobs_and_lets_the_load_be_made_again() -> None:
    session = Session()

    def stop() -> None:
        session.stop = True

    with pytest.raises(RetriableError, match="the task is stopping"):
        session.jobs(3).run_all([work(session.endless), work(stop, session.endless), work(session.endless)])
    assert session.cancelled.is_set()


def test_how_many_topics_are_loaded_at_once_follows_the_cores_within_bounds() -> None:
    assert [width_for(cores) for cores in (0, 1, 2, 8, 1000)] == [4, 4, 8, 32, 32]


# -- tables that topics share ------------------------------------------------------------------------------------

INT = Schema.struct({"id": Schema.int64(optional=True)})
TEXT = Schema.struct({"id": Schema.int64(optional=True), "text": Schema.string(optional=True)})
FLAG = Schema.struct({"id": Schema.int64(optional=True), "flag": Schema.boolean(optional=True)})


def test_topics_with_tables_of_their_own_agree() -> None:
    loads = [{"a": INT}, {"b": TEXT}, {"c": FLAG}]
    assert disagreeing_loads({}, loads) == []
    assert agreed_tables({}, loads) == {"a": INT, "b": TEXT, "c": FLAG}


def test_topics_that_change_a_table_in_the_same_way_or_not_at_all_agree() -> None:
    loads = [{"t": TEXT}, {"t": INT}, {"t": TEXT, "u": FLAG}]
    assert disagreeing_loads({"t": INT}, loads) == []
    assert agreed_tables({"t": INT}, loads) == {"t": TEXT, "u": FLAG}


def test_a_topic_that_changes_a_table_in_another_way_is_loaded_again() -> None:
    loads = [{"t": TEXT}, {"t": FLAG}, {"u": FLAG}, {"t": TEXT}, {"u": INT}]
    assert disagreeing_loads({"t": INT}, loads) == [1, 4]
    assert disagreeing_loads({}, [{"t": INT}, {"t": TEXT}]) == [1]
