"""The herder's inbox."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from connect.errors import RetriableError
from equipment.fakes.herding import Clock
from worker.errors import UnknownConnectorError
from worker.herder.inbox import Inbox, Once, Requests


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


class Topic:
    """A worker's view of the connectors, and what it has yet to read."""

    def __init__(self, *unread: str) -> None:
        self.known = set[str]()
        self.unread = unread
        self.reads = list[Future[None]]()

    def read_to_end(self) -> Future[None]:
        self.reads.append(Future())
        return self.reads[-1]

    def arrive(self) -> None:
        """Read what there is."""
        self.known.update(self.unread)
        self.reads[-1].set_result(None)

    def info(self, name: str) -> str:
        if name not in self.known:
            raise UnknownConnectorError(f"Connector {name} not found")
        return f"of {name}"


def test_a_worker_reads_on_before_it_says_that_there_is_no_such_connector() -> None:
    inbox, topic = Inbox(), Topic("new")
    requests = Requests(inbox, topic.read_to_end)
    new, absent = requests.ask(lambda: topic.info("new")), requests.ask(lambda: topic.info("absent"))
    for _ in range(2):
        taken(inbox)
    assert not new.done()
    assert new.stage[0].startswith("reading the config topic to its end")
    topic.arrive()
    topic.reads[0].set_result(None)
    for _ in range(2):
        taken(inbox)
    assert new.result() == "of new"
    with pytest.raises(UnknownConnectorError, match="Connector absent not found"):
        absent.result()
    assert len(topic.reads) == 2
    known = requests.ask(lambda: topic.info("new"))
    taken(inbox)
    assert (known.result(), len(topic.reads)) == ("of new", 2)


def test_a_worker_that_cannot_read_on_answers_by_what_it_knows() -> None:
    inbox, topic = Inbox(), Topic()
    request = Requests(inbox, topic.read_to_end).ask(lambda: topic.info("absent"))
    taken(inbox)
    topic.reads[0].set_exception(RetriableError("no broker answers"))
    taken(inbox)
    with pytest.raises(UnknownConnectorError, match="Connector absent not found"):
        request.result()
