from collections.abc import Callable

import pytest

from connect.data import SourceRecord
from connect.errors import ConfigError, ConnectError, DataError, PluginError, RetriableError, SchemaError
from connect.internals.chain.raw_records import RawRecord
from connect.internals.chain.tolerance import ErrorPolicy, Failure, Stage, StageError, StopRequested, Tolerance


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return True


class Account:
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self.flushed = 0

    def report(self, failure: Failure) -> None:
        self.failures.append(failure)

    def flush(self) -> None:
        self.flushed = len(self.failures)


TOLERANT = ErrorPolicy(tolerates_errors=True)


def failing(times: int) -> Callable[[], str]:
    tries = iter(range(times))

    def call() -> str:
        if next(tries, None) is not None:
            raise RetriableError("not yet")
        return "done"

    return call


def test_what_may_succeed_later_is_tried_again_until_the_timeout() -> None:
    clock = Clock()
    tolerance = Tolerance(ErrorPolicy(retry_timeout=10_000), [], clock.wait, lambda: clock.now)
    assert tolerance.attempt(Stage.TRANSFORMATION, "T", failing(4)) == "done"
    assert clock.waits == pytest.approx([0.3, 0.6, 1.2, 2.4])
    assert tolerance.counts.total_retries == 4


def test_a_record_that_waits_when_the_task_stops_is_not_given_up() -> None:
    account = Account()
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True, retry_timeout=-1), [account], lambda seconds: False)
    with pytest.raises(StopRequested):
        tolerance.attempt(Stage.TRANSFORMATION, "T", failing(99))
    assert account.failures == []


@pytest.mark.parametrize(
    "error", [ConnectError("refused"), ConfigError("k", "v", "r"), PluginError("no library"), MemoryError()]
)
def test_what_is_not_about_a_record_is_no_reason_to_leave_it_out(error: Exception) -> None:
    account = Account()
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True, retry_timeout=-1), [account], lambda seconds: True)

    def broken() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        tolerance.attempt(Stage.VALUE_CONVERTER, "C", broken)
    assert raised.value is error
    assert account.failures == []
    assert tolerance.counts.total_record_errors == 0


@pytest.mark.parametrize("error", [DataError("bad"), SchemaError("bad"), ValueError("bad"), KeyError("bad")])
def test_what_is_about_a_record_is_up_to_the_tolerance(error: Exception) -> None:
    def broken() -> None:
        raise error

    with pytest.raises(StageError) as raised:
        Tolerance(ErrorPolicy(), [], lambda seconds: True).attempt(Stage.TRANSFORMATION, "T", broken)
    assert raised.value.cause is error


def test_after_the_timeout_the_stage_has_failed() -> None:
    clock = Clock()
    tolerance = Tolerance(ErrorPolicy(retry_timeout=1000), [], clock.wait, lambda: clock.now)
    with pytest.raises(StageError) as raised:
        tolerance.attempt(Stage.VALUE_CONVERTER, "C", failing(99))
    assert clock.now == pytest.approx(1.0)
    assert raised.value.stage is Stage.VALUE_CONVERTER
    assert isinstance(raised.value.cause, RetriableError)


@pytest.mark.parametrize(
    "stage", [Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER, Stage.TRANSFORMATION]
)
def test_what_may_pass_is_no_reason_to_leave_a_record_out(stage: Stage) -> None:
    """A lost connection to a schema registry would make a dead letter of every record."""
    account = Account()
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True), [account], lambda seconds: True)
    with pytest.raises(StageError) as raised:
        tolerance.attempt(stage, "C", failing(1))
    with pytest.raises(ConnectError, match=r"not yet.*errors\.retry\.timeout") as failed:
        tolerance.give_up(Failure.of_stage(raised.value))
    assert type(failed.value) is ConnectError
    assert account.failures == []
    assert tolerance.counts.total_records_skipped == 0
    assert tolerance.counts.total_record_failures == 1


def test_what_a_connector_reports_is_left_out_whatever_its_error() -> None:
    account = Account()
    tolerance = Tolerance(ErrorPolicy(tolerates_errors=True), [account], lambda seconds: True)
    tolerance.give_up(Failure(Stage.TASK_PUT, "T", RetriableError("the target was busy")))
    assert len(account.failures) == 1


def test_without_a_timeout_and_for_other_errors_there_is_one_try() -> None:
    clock = Clock()
    with pytest.raises(StageError):
        Tolerance(ErrorPolicy(), [], clock.wait).attempt(Stage.TRANSFORMATION, "T", failing(1))

    def broken() -> None:
        raise DataError("never")

    with pytest.raises(StageError):
        Tolerance(ErrorPolicy(retry_timeout=-1), [], clock.wait).attempt(Stage.TRANSFORMATION, "T", broken)
    assert clock.waits == []


def test_delays_grow_up_to_the_longest_and_are_random_from_there() -> None:
    clock = Clock()
    tolerance = Tolerance(ErrorPolicy(retry_timeout=-1, retry_delay_max=1000), [], clock.wait, lambda: clock.now)
    assert tolerance.attempt(Stage.TRANSFORMATION, "T", failing(12)) == "done"
    assert clock.waits[:2] == pytest.approx([0.3, 0.6])
    assert all(0 <= wait <= 1.0 for wait in clock.waits)
    assert len(set(clock.waits[2:])) > 1


def test_none_fails_the_task_and_all_leaves_the_record_out() -> None:
    failure = Failure(Stage.TASK_POLL, "T", DataError("bad line"), record=SourceRecord("t", "x"))
    account = Account()
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler: bad line"):
        Tolerance(ErrorPolicy(), [account], Clock().wait).give_up(failure)
    tolerant = Tolerance(TOLERANT, [account], Clock().wait)
    tolerant.give_up(failure)
    tolerant.flush()
    assert account.failures == [failure, failure], "it is reported either way"
    assert account.flushed == 2
    assert (tolerant.counts.total_record_errors, tolerant.counts.total_records_skipped) == (1, 1)


def test_a_task_that_fails_says_which_record_it_was() -> None:
    raw = RawRecord("orders", 1, 7, 99, "CreateTime", b"secret-key", b"secret-value", ())
    failure = Failure(Stage.VALUE_CONVERTER, "a.B", DataError("no JSON"), raw=raw)
    with pytest.raises(ConnectError) as raised:
        Tolerance(ErrorPolicy(), [], Clock().wait).give_up(failure)
    assert str(raised.value) == "Tolerance exceeded in error handler: no JSON (value.converter, record orders:1:7)"


@pytest.mark.parametrize(
    ("error", "alias", "told"),
    [
        (DataError("no such field"), "route", "no such field (transforms.route, record orders:1:7)"),
        (DataError("no such field"), None, "no such field (a.B, record orders:1:7)"),
        (KeyError("id"), "route", "KeyError: 'id' (transforms.route, record orders:1:7)"),
    ],
)
def test_a_task_that_fails_says_which_transformation_it_was(error: Exception, alias: str | None, told: str) -> None:
    def broken() -> None:
        raise error

    tolerance = Tolerance(ErrorPolicy(), [], Clock().wait)
    raw = RawRecord("orders", 1, 7, 99, "CreateTime", None, None, ())
    with pytest.raises(StageError) as failed:
        tolerance.attempt(Stage.TRANSFORMATION, "a.B", broken, alias)
    with pytest.raises(ConnectError) as raised:
        tolerance.give_up(Failure.of_stage(failed.value, raw=raw))
    assert str(raised.value) == f"Tolerance exceeded in error handler: {told}"
