"""What an inquiry says that got no answer."""

from __future__ import annotations

import pytest

from equipment.fakes.herding import WorkedInbox
from worker.herder.inquiries import Inquiries
from worker.messages import messages
from worker.supervisor.notices import Answered
from worker.supervisor.process import LOST_PLACE


@pytest.mark.parametrize(
    ("trace", "told"),
    [
        (f"The process {LOST_PLACE}.", "This worker has lost its place in its cluster"),
        ("ValueError: no", "A plugin could not answer: ValueError: no"),
    ],
)
def test_a_lost_place_is_not_blamed_on_a_plugin(trace: str, told: str) -> None:
    inquiries = Inquiries(lambda *_: None, lambda _: None)
    request = WorkedInbox().run(lambda _: inquiries.ask(messages.ReadSinkLag({}, {}), messages.SinkLag))
    inquiries.answered(Answered(0, messages.Failed(trace)))
    error = request.exception()
    assert str(error).startswith(told)


def test_several_are_asked_at_once_and_answered_in_order() -> None:
    asked: list[int] = []
    inquiries = Inquiries(lambda number, _: asked.append(number), lambda _: None)
    questions = [messages.ReadSinkLag({}, {}), messages.ReadSinkLag({}, {})]
    request = WorkedInbox().run(lambda _: inquiries.ask_all(questions, messages.SinkLag))
    assert asked == [0, 1]
    inquiries.answered(Answered(1, messages.SinkLag([("b", 0, None, 0, 0)])))
    assert not request.done()
    inquiries.answered(Answered(0, messages.SinkLag([])))
    assert [report.partitions for report in request.result(0)] == [[], [("b", 0, None, 0, 0)]]


def test_the_other_processes_end_with_the_first_that_cannot_answer() -> None:
    given_up: list[int] = []
    inquiries = Inquiries(lambda *_: None, given_up.append)
    questions = [messages.ReadSinkLag({}, {}) for _ in range(3)]
    request = WorkedInbox().run(lambda _: inquiries.ask_all(questions, messages.SinkLag))
    inquiries.answered(Answered(1, messages.Failed("ValueError: no")))
    assert "could not answer: ValueError: no" in str(request.exception(0))
    assert given_up == [0, 2]
    ended = inquiries.all_ended()
    for number in given_up:
        assert not ended.done()
        inquiries.answered(Answered(number, messages.Failed("The process ended without an answer")))
    assert ended.done()
