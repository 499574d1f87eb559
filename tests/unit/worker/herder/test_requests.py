"""Steps of requests: what they wait for, what they are sent, and how they end."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from connect.errors import ConnectError, RetriableError
from equipment.fakes.herding import WorkedInbox
from worker.errors import UnavailableError, UnknownConnectorError
from worker.herder.inbox import Deferred, Inbox
from worker.herder.requests import Attempt, Request, Requests, Steps, answered, asked


class Herder:
    """Runs steps and notes what happens."""

    def __init__(self) -> None:
        self.inbox, self.seen = WorkedInbox(), list[str]()
        self.requests = Requests(self.inbox)

    def wait_for(self, awaited: Future[Any], name: str = "steps") -> Request[Any]:
        """Begin a request that waits for one future, and note how it goes on and that it is over."""

        def steps(_: Request[Any]) -> Steps[Any]:
            self.seen.append(f"{name} wait")
            try:
                found = yield awaited
            except ConnectError as error:
                self.seen.append(f"{name} fail: {error}")
                raise
            finally:
                self.seen.append(f"{name} over")
            self.seen.append(f"{name} go on with {found}")
            return found

        return self.requests.begin(steps)


@pytest.fixture
def herder() -> Herder:
    return Herder()


def test_steps_begin_in_the_inboxs_thread_in_order(herder: Herder) -> None:
    first, second = herder.requests.ask(lambda: 1), herder.requests.ask(lambda: 2)
    assert not first.done()
    herder.inbox.work()
    assert (first.result(), second.result()) == (1, 2)


def test_a_deferred_is_gone_on_from_within_the_action_that_completes_it(herder: Herder) -> None:
    lead = Deferred[str]()
    request = herder.wait_for(lead)
    herder.inbox.work()
    herder.inbox.post(lambda: herder.seen.append("posted before"))
    lead.set_result("lead")
    assert herder.seen == ["steps wait", "steps over", "steps go on with lead"]
    assert request.result() == "lead"


def test_a_deferred_that_is_done_is_not_waited_for(herder: Herder) -> None:
    lead = Deferred[str]()
    lead.set_result("lead")
    herder.wait_for(lead)
    herder.inbox.post(lambda: herder.seen.append("posted before"))
    herder.inbox.work()
    assert herder.seen[-1] == "posted before"


@pytest.mark.parametrize("before", [True, False])
def test_another_future_is_gone_on_from_after_what_was_posted_before(herder: Herder, before: bool) -> None:
    written = Future[str]()
    if before:
        written.set_result("written")
    herder.wait_for(written)
    herder.inbox.post(lambda: herder.seen.append("what the store has read"))
    if not before:
        herder.inbox.post(lambda: written.set_result("written"))
    herder.inbox.work()
    assert herder.seen == ["steps wait", "what the store has read", "steps over", "steps go on with written"]


@pytest.mark.parametrize("kind", [Deferred, Future])
def test_an_error_is_raised_where_it_was_waited_for(herder: Herder, kind: type[Future[Any]]) -> None:
    awaited = kind()
    request = herder.wait_for(awaited)
    herder.inbox.work()
    awaited.set_exception(ConnectError("refused"))
    herder.inbox.work()
    assert herder.seen == ["steps wait", "steps fail: refused", "steps over"]
    assert str(request.exception()) == "refused"


def test_a_cancelled_future_is_an_error(herder: Herder) -> None:
    written = Future[str]()
    request = herder.wait_for(written)
    herder.inbox.work()
    written.cancel()
    herder.inbox.work()
    assert request.exception() is not None


def test_any_error_of_a_step_fails_its_request_alone(herder: Herder) -> None:
    def steps(_: Request[None]) -> Steps[None]:
        yield herder.inbox.pause(0)
        raise ZeroDivisionError

    failed, other = herder.requests.begin(steps), herder.requests.ask(lambda: "fine")
    herder.inbox.work()
    assert isinstance(failed.exception(), ZeroDivisionError)
    assert other.result() == "fine"


def test_steps_that_nobody_waits_for_do_not_fail_in_silence(herder: Herder) -> None:
    def steps(_: Request[None]) -> Steps[None]:
        yield herder.inbox.pause(1)
        raise ZeroDivisionError

    herder.requests.start(steps)
    with pytest.raises(ZeroDivisionError):
        herder.inbox.work(1)


@pytest.mark.parametrize("kind", [Deferred, Future])
def test_a_request_that_is_broken_off_is_closed_where_it_waits(herder: Herder, kind: type[Future[Any]]) -> None:
    awaited = kind()
    request = herder.wait_for(awaited)
    herder.inbox.work()
    request.break_off(ConnectError("another worker leads"))
    assert herder.seen == ["steps wait", "steps over"]
    awaited.set_result("too late")
    herder.inbox.work()
    assert herder.seen == ["steps wait", "steps over"]
    assert str(request.exception()) == "another worker leads"


def test_a_request_that_its_own_step_breaks_off_ends_with_that_step(herder: Herder) -> None:
    def steps(request: Request[None]) -> Steps[None]:
        try:
            request.break_off(ConnectError("broken off"))
            herder.seen.append("the step ends")
            yield herder.inbox.pause(0)
            herder.seen.append("never")
        finally:
            herder.seen.append("closed")

    request = herder.requests.begin(steps)
    herder.inbox.work()
    assert herder.seen == ["the step ends", "closed"]
    assert str(request.exception()) == "broken off"


def test_a_request_that_was_broken_off_before_it_begins_does_nothing(herder: Herder) -> None:
    request = herder.wait_for(Deferred[str]())
    request.break_off(ConnectError("broken off"))
    herder.inbox.work()
    assert herder.seen == []


def test_an_attempt_is_continued_before_what_its_end_has_posted_later(herder: Herder) -> None:
    written = Future[None]()

    def attempted(attempt: Request[str]) -> Steps[str]:
        # As a turn does.
        attempt.add_done_callback(lambda _: herder.inbox.post(lambda: herder.seen.append("its turn is over")))
        yield written
        return "answer"

    def steps(_: Request[str]) -> Steps[str]:
        attempt: Request[str] = Request()
        answer = yield Attempt(attempt, attempted(attempt))
        herder.seen.append("continued")
        return str(answer)

    request = herder.requests.begin(steps)
    herder.inbox.work()
    written.set_result(None)
    herder.inbox.work()
    assert herder.seen == ["continued", "its turn is over"]
    assert request.result() == "answer"


def test_a_failed_attempt_may_be_survived(herder: Herder) -> None:
    def attempted() -> Steps[None]:
        yield from ()
        raise UnknownConnectorError("gone")

    def steps(_: Request[str]) -> Steps[str]:
        try:
            yield Attempt(Request(), attempted())
        except UnknownConnectorError:
            return "no matter"
        return "there"

    request = herder.requests.begin(steps)
    herder.inbox.work()
    assert request.result() == "no matter"


def taken(inbox: Inbox) -> None:
    action = inbox.take()
    assert action is not None
    action()


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


def test_a_worker_that_cannot_read_on_does_not_say_that_there_is_no_such_connector() -> None:
    inbox, topic = Inbox(), Topic()
    request = Requests(inbox, topic.read_to_end).ask(lambda: topic.info("absent"))
    taken(inbox)
    topic.reads[0].set_exception(RetriableError("no broker answers"))
    taken(inbox)
    with pytest.raises(UnavailableError, match=r"Connector absent not found, as far as .* read on: no broker answers"):
        request.result()


def test_a_worker_reads_on_only_before_the_steps_have_waited() -> None:
    inbox, topic, begun = WorkedInbox(), Topic(), list[str]()
    turn = Deferred[None]()
    turn.set_result(None)

    def steps(_: Request[None]) -> Steps[None]:
        begun.append("begun")
        yield turn
        topic.info("absent")

    request = Requests(inbox, topic.read_to_end).begin(steps)
    inbox.work()
    assert isinstance(request.exception(), UnknownConnectorError)
    assert (begun, topic.reads) == (["begun"], [])


class Front:
    """What other threads ask."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.stage = ""

    @asked
    def read(self, request: Request[str], name: str, *, twice: bool = False) -> Steps[str]:
        """Read it."""
        request.enter(f"reading {name}")
        self.stage = request.stage[0]
        yield from ()
        return name * 2 if twice else name

    @answered
    def length(self, name: str) -> int:
        return len(name)


def test_methods_are_asked_from_any_thread_and_run_in_the_inboxs(herder: Herder) -> None:
    front = Front(herder.requests)
    read, length = front.read("a", twice=True), front.length("abc")
    assert not read.done()
    assert not length.done()
    herder.inbox.work()
    assert (read.result(), length.result(), front.stage) == ("aa", 3, "reading a")
    assert (Front.read.__name__, Front.read.__doc__) == ("read", "Read it.")


def test_functions_are_made_of_steps_and_of_answers(herder: Herder) -> None:
    def steps(_: Request[int], number: int, *, plus: int = 0) -> Steps[int]:
        yield herder.inbox.pause(0)
        return number + plus

    add, double = herder.requests.from_steps(steps), herder.requests.from_answer(lambda number: number * 2)
    added, doubled = add(1, plus=2), double(2)
    herder.inbox.work()
    assert (added.result(), doubled.result()) == (3, 4)
