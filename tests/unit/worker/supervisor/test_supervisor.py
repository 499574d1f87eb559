"""The supervisor with children that are threads and do as their config says."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing.connection import Connection
from queue import SimpleQueue

import pytest

from worker.messages import messages
from worker.messages.messages import Command, decode, encode
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Answered, Changed, Expires, Measured, Notice, Published, Rested
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

TASK = Unit("c", 0)
CONNECTOR = Unit("c")
DEADLINE = 10.0


def child(connection: Connection) -> None:
    """A child that speaks the protocol; the first command's ``does`` says how it behaves."""
    try:
        first = decode(connection.recv_bytes())
    except (EOFError, OSError):
        return
    send = lambda report: connection.send_bytes(encode(report))  # noqa: E731
    if isinstance(first, messages.ValidateConfig):
        if first.config["does"] == "validate":
            send(messages.Validated({"error_count": 0}, "source"))
        if first.config["does"] == "hang":
            with contextlib.suppress(EOFError, OSError):
                connection.recv_bytes()
        return
    does = first.config["does"]
    if does == "vanish":
        return
    if does == "fail":
        send(messages.Failed("Traceback: no file"))
        return
    if does == "babble":
        connection.send_bytes(b"not a message")
        return
    send(messages.Started("1.2"))
    if does.startswith("rest"):
        send(messages.TaskConfigs([{"t": "0"}]))
        send(messages.Idle())
    if does == "report":
        send(messages.Metrics({"n": 1.0}))
        send(messages.TaskConfigs([{"t": "0"}]))
        send(messages.ConfigExpires(1500))
        send(messages.LogRecord("a.plugin", logging.WARNING, 1.0, "from the child"))
        send(messages.ReadOffsets(7, [{"f": 1}]))
    try:
        while True:
            command = decode(connection.recv_bytes())
            if isinstance(command, messages.Pause):
                send(messages.Paused())
            elif isinstance(command, messages.OffsetsRead):
                send(messages.Failed(f"offsets {command.offsets}"))
            elif isinstance(command, messages.TakeConfig):
                send(messages.Declined() if does == "decline" else messages.Failed(f"took {command.config}"))
            elif isinstance(command, messages.Stop) and does != "hang":
                return
            elif isinstance(command, messages.Rest):
                if does == "rest badly":
                    send(messages.Failed("Traceback: stop"))
                if does != "rest never":
                    return
    except (EOFError, OSError):
        return


class World:
    """A supervisor, and what it has told."""

    def __init__(self, inquiry_timeout: float = 90.0, graceful_timeout: float = 0.2) -> None:
        self.notices: SimpleQueue[Notice] = SimpleQueue()
        self.offset_requests: list[str] = []
        self.supervisor = Supervisor(
            ThreadLauncher(child), self.notices.put, self.serve_offsets, graceful_timeout, inquiry_timeout
        )
        self.supervisor.start_thread()

    def serve_offsets(
        self,
        request: messages.ReadOffsets | messages.CommitOffsets,
        connector: str,
    ) -> Future[Command]:
        self.offset_requests.append(connector)
        answer: Future[Command] = Future()
        answer.set_result(messages.OffsetsRead(request.request, [None], None))
        return answer

    def start(self, does: str) -> None:
        self.supervisor.start(TASK, messages.RunTask("c", 0, {"does": does}, {}, {}, paused=False))

    def start_connector(self, does: str) -> None:
        self.supervisor.start(CONNECTOR, messages.RunConnector("c", {"does": does}, {}))
        assert self.next() == Changed(CONNECTOR, Phase.RUNNING, None, "1.2")
        assert self.next() == Published("c", ({"t": "0"},))

    def next(self) -> Notice:
        return self.notices.get(timeout=DEADLINE)

    def phases(self, count: int) -> list[Phase]:
        notices = [self.next() for _ in range(count)]
        return [notice.phase for notice in notices if isinstance(notice, Changed)]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.supervisor.close()


def test_a_unit_starts_is_told_things_and_stops(world: World) -> None:
    world.start("well")
    assert world.next() == Changed(TASK, Phase.RUNNING, None, "1.2")
    world.supervisor.command(TASK, messages.Pause())
    assert world.next() == Changed(TASK, Phase.PAUSED, None, "1.2")
    world.supervisor.stop(TASK)
    assert world.phases(2) == [Phase.STOPPING, Phase.GONE]


def test_a_task_is_told_of_a_new_configuration_and_begins_anew_with_it_if_it_declines(world: World) -> None:
    world.start("decline")
    assert world.phases(1) == [Phase.RUNNING]
    world.supervisor.command(TASK, messages.TakeConfig({"does": "run"}))
    assert world.phases(2) == [Phase.STARTING, Phase.RUNNING]
    world.supervisor.command(TASK, messages.TakeConfig({"does": "more"}))
    assert world.next() == Changed(TASK, Phase.FAILED, "took {'does': 'more'}", "1.2")


def test_a_unit_that_fails_says_why_and_can_be_cleared_away(world: World) -> None:
    world.start("fail")
    assert world.next() == Changed(TASK, Phase.FAILED, "Traceback: no file", None)
    world.supervisor.stop(TASK)
    assert world.phases(1) == [Phase.GONE]
    world.start("well")
    assert world.phases(1) == [Phase.RUNNING]


def test_a_unit_that_ends_without_a_word_has_failed(world: World) -> None:
    world.start("vanish")
    notice = world.next()
    assert isinstance(notice, Changed)
    assert notice.phase is Phase.FAILED
    assert notice.trace == "The process of c|task-0 ended without having said why."


def test_a_unit_that_does_not_stop_is_killed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.start("hang")
    world.supervisor.stop(TASK)
    seen = []
    while Phase.GONE not in seen:
        seen += world.phases(1)
    assert "did not stop within 0.2 s and is killed" in caplog.text


def test_nonsense_on_the_pipe_ends_the_child_not_the_worker(world: World) -> None:
    world.start("babble")
    notice = world.next()
    assert isinstance(notice, Changed)
    assert notice.phase is Phase.FAILED
    assert "are not a message" in str(notice.trace)


def test_reports_reach_who_they_are_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world.start("report")
        assert world.next() == Changed(TASK, Phase.RUNNING, None, "1.2")
        assert world.next() == Measured(TASK, {"n": 1.0})
        assert world.next() == Published("c", ({"t": "0"},))
        assert world.next() == Expires(TASK, 1.5)
        assert world.next() == Changed(TASK, Phase.FAILED, "offsets [None]", "1.2")
    assert world.offset_requests == ["c"]
    [record] = [record for record in caplog.records if record.name == "a.plugin"]
    assert record.getMessage() == "from the child"
    assert record.context == "c|task-0"  # type: ignore[attr-defined]


def test_an_inquiry_is_answered_even_when_the_process_does_not(world: World) -> None:
    world.supervisor.inquire(1, messages.ValidateConfig({"does": "validate"}, {}))
    assert world.next() == Answered(1, messages.Validated({"error_count": 0}, "source"))
    world.supervisor.inquire(2, messages.ValidateConfig({"does": "vanish"}, {}))
    assert world.next() == Answered(
        2, messages.Failed("The process ended without an answer: it ended without having said why.")
    )


@pytest.mark.parametrize("unsendable", ["\ud800", 1 << 64])
def test_an_inquiry_that_cannot_be_sent_is_refused_at_once(world: World, unsendable: object) -> None:
    world.supervisor.inquire(1, messages.AlterSourceOffsets({}, {}, [({"f": "a"}, {"p": unsendable})]))
    answered = world.next()
    assert isinstance(answered, Answered)
    assert isinstance(answered.report, messages.Refused)
    assert answered.report.invalid


def test_an_inquiry_that_hangs_is_given_up() -> None:
    world = World(inquiry_timeout=0.1)
    world.supervisor.inquire(1, messages.ValidateConfig({"does": "hang"}, {}))
    assert world.next() == Answered(1, messages.Failed("There was no answer within 0.1 s."))
    world.supervisor.close()


def test_an_inquiry_that_hangs_does_not_keep_the_worker_from_ending() -> None:
    world = World()
    world.supervisor.inquire(1, messages.ValidateConfig({"does": "hang"}, {}))
    world.supervisor.close()
    assert world.next() == Answered(1, messages.Failed("The worker is stopping."))


def test_close_stops_everything() -> None:
    world = World()
    world.start("well")
    assert world.phases(1) == [Phase.RUNNING]
    world.supervisor.close()
    assert world.phases(2) == [Phase.STOPPING, Phase.GONE]


def test_a_connector_that_watches_nothing_goes_on_without_a_process_and_starts_anew(world: World) -> None:
    for _ in range(2):
        world.start_connector("rest")
        assert world.next() == Rested(CONNECTOR)
        # As with a process that runs.
        world.supervisor.start(CONNECTOR, messages.RunConnector("c", {"does": "rest"}, {}))
        world.supervisor.set_log_level("a", logging.DEBUG)
        world.supervisor.kill(CONNECTOR)
        world.supervisor.stop(CONNECTOR)
        assert world.phases(2) == [Phase.STOPPING, Phase.GONE]


def test_a_connector_that_rests_can_be_made_to_fail(world: World) -> None:
    world.start_connector("rest")
    assert world.next() == Rested(CONNECTOR)
    world.supervisor.command(CONNECTOR, messages.Fail("its tasks are refused"))
    assert world.next() == Changed(CONNECTOR, Phase.FAILED, "its tasks are refused", "1.2")
    world.supervisor.stop(CONNECTOR)
    assert world.phases(1) == [Phase.GONE]


def test_a_connector_that_fails_to_stop_before_it_rests_has_failed(world: World) -> None:
    world.start_connector("rest badly")
    assert world.next() == Changed(CONNECTOR, Phase.FAILED, "Traceback: stop", "1.2")


def test_a_connector_whose_process_does_not_end_to_rest_is_killed_and_rests(world: World) -> None:
    world.start_connector("rest never")
    assert world.next() == Rested(CONNECTOR)


def test_a_connector_is_stopped_while_its_process_ends_to_rest() -> None:
    world = World(graceful_timeout=600.0)
    world.start_connector("rest never")
    world.supervisor.stop(CONNECTOR)
    assert world.phases(2) == [Phase.STOPPING, Phase.GONE]
    world.supervisor.close()


def test_what_rests_does_not_keep_the_worker_from_ending() -> None:
    world = World()
    world.start_connector("rest")
    assert world.next() == Rested(CONNECTOR)
    world.supervisor.close()
    assert world.phases(2) == [Phase.STOPPING, Phase.GONE]
