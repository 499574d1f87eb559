"""The herder's inbox."""

from __future__ import annotations

from connect.errors import RetriableError
from equipment.fakes.herding import Clock
from worker.herder.inbox import Deferred, Inbox, Once, together


def taken(inbox: Inbox) -> None:
    action = inbox.take()
    assert action is not None
    action()


def test_what_is_posted_is_done_in_order() -> None:
    inbox, done = Inbox(), list[int]()
    for number in range(3):
        inbox.post(lambda number=number: done.append(number))
    for _ in range(3):
        taken(inbox)
    assert done == [0, 1, 2]


def test_what_is_due_goes_before_what_waits_and_what_is_cancelled_is_not_done() -> None:
    clock, done = Clock(), list[str]()
    inbox = Inbox(clock)
    inbox.after(2, lambda: done.append("later"))
    inbox.after(1, lambda: done.append("sooner"))
    inbox.after(1, lambda: done.append("never")).cancel()
    inbox.post(lambda: done.append("posted"))
    taken(inbox)
    clock.now += 5
    inbox.post(lambda: done.append("posted after"))
    for _ in range(3):
        taken(inbox)
    assert done == ["posted", "sooner", "later", "posted after"]


def test_a_wait_ends_when_something_is_due() -> None:
    inbox, done = Inbox(), list[str]()
    inbox.after(0.01, lambda: done.append("due"))
    taken(inbox)
    assert done == ["due"]


def test_a_closed_inbox_is_worked_off_first() -> None:
    inbox, done = Inbox(), list[str]()
    inbox.post(lambda: done.append("before"))
    inbox.close()
    taken(inbox)
    assert (done, inbox.take()) == (["before"], None)


def test_what_is_to_be_done_once_is_done_once_for_all_who_asked_before() -> None:
    inbox, done = Inbox(), list[str]()
    once = Once(inbox, lambda: done.append("once"))
    once.post()
    inbox.post(lambda: done.append("other"))
    once.post()
    for _ in range(2):
        taken(inbox)
    once.post()
    taken(inbox)
    assert done == ["once", "other", "once"]


def test_a_pause_ends_when_it_is_over() -> None:
    clock = Clock()
    inbox = Inbox(clock)
    pause = inbox.pause(1)
    assert not pause.done()
    clock.now += 1
    taken(inbox)
    assert pause.done()


def test_results_come_together_in_order_once_the_last_is_there() -> None:
    first, second = Deferred[int](), Deferred[int]()
    both = together([first, second])
    second.set_result(2)
    assert not both.done()
    first.set_result(1)
    assert both.result() == [1, 2]


def test_the_first_failure_is_not_waited_out() -> None:
    first, second, third = Deferred[int](), Deferred[int](), Deferred[int]()
    all_three = together([first, second, third])
    second.set_exception(RetriableError("no"))
    third.set_exception(RetriableError("neither"))
    first.set_result(1)
    assert str(all_three.exception()) == "no"
