"""Configurations that several users change at once, as the leader writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from connect.errors import AlreadyExistsError, NotFoundError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.errors import ConflictError, InvalidConnectorError, NotLeaderError
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.herder.connectors.writes import Writes
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Request, Steps
from worker.messages import messages
from worker.messages.messages import Inquiry
from worker.metrics.measurements import Measurements
from worker.peers.leader import Publication
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.notices import Answered

CLASS = {"connector.class": "C"}


class SlowStore(MemoryConfigStore):
    """A store whose writes are on their way until the test has them land, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way: list[Callable[[], None]] = []

    def put_connector(
        self,
        name: str,
        config: Mapping[str, str],
        target: TargetState | None,
        drained: int | None = None,
        plugin_type: str | None = None,
        author: str | None = None,
    ) -> Future[None]:
        put = super().put_connector
        return self._later(lambda: put(name, config, target, drained, plugin_type, author))

    def remove_connector(self, name: str) -> Future[None]:
        return self._later(lambda: super(SlowStore, self).remove_connector(name))

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> Future[None]:
        return self._later(lambda: super(SlowStore, self).put_task_configs(name, configs))

    def put_target_state(self, name: str, target: TargetState, drained: int | None = None) -> Future[None]:
        return self._later(lambda: super(SlowStore, self).put_target_state(name, target, drained))

    def _later(self, write: Callable[[], Future[None]]) -> Future[None]:
        done: Future[None] = Future()

        def land() -> None:
            error = write().exception()
            done.set_exception(error) if error is not None else done.set_result(None)

        self.under_way.append(land)
        return done


class Leader:
    """The writes of a leader. Validations are answered, and writes land, when the test says."""

    def __init__(self) -> None:
        self.inbox, self.store, self.place = WorkedInbox(), SlowStore(), Place()
        statuses = MemoryStatusStore()
        self.validations: list[tuple[int, Inquiry]] = []
        self.answered = 0
        inquiries = Inquiries(lambda number, inquiry: self.validations.append((number, inquiry)), lambda _: None)
        self._inquiries = inquiries
        measurements = Measurements("here:1", statuses, self.place, self.inbox, None)
        connectors = Connectors(self.store, statuses, PluginRegistry([]), TopicTracking(), measurements)
        self.leadership = Leadership(self.place, self.store, self.inbox)
        self.writes = Writes(
            {},
            self.store,
            self.place,
            connectors,
            self.leadership,
            inquiries,
            self.inbox,
            ChangeQueue(self.leadership, self.inbox.post),
        )
        self.leadership.changed()
        self.inbox.work()

    @property
    def config(self) -> dict[str, str] | None:
        entry = self.store.connectors().get("c")
        return None if entry is None else dict(entry.config)

    def ask(self, steps: Callable[[Request[Any]], Steps[Any]]) -> Request[Any]:
        """What the herder does with a request."""
        return self.inbox.run(steps)

    def patch(self, **keys: str | None) -> Request[Any]:
        return self.ask(lambda request: self.writes.patch(request, "c", keys))

    def put(self, **keys: str) -> Request[Any]:
        return self.ask(lambda request: self.writes.put(request, "c", {**CLASS, **keys}))

    def delete(self) -> Request[Any]:
        return self.ask(lambda request: self.writes.delete(request, "c"))

    def stop(self) -> Request[Any]:
        return self.ask(lambda request: self.writes.set_target_state(request, "c", TargetState.STOPPED))

    def publish(self) -> Request[Any]:
        said = Publication(self.place.generation, "ab", 1)
        return self.ask(lambda request: self.writes.put_task_configs(request, "c", [{"n": "0"}], said))

    def validate(self) -> None:
        """Answer the validation that waits for the longest; a configuration with ``invalid`` is refused."""
        number, inquiry = self.validations.pop(0)
        assert isinstance(inquiry, messages.ValidateConfig)
        errors = ["That is wrong"] if "invalid" in inquiry.config else []
        self.answered += 1
        infos = {"configs": [{"value": {"errors": errors}}]}
        self._inquiries.answered(Answered(number, messages.Validated(infos, "source")))
        self.inbox.work()

    def land(self) -> None:
        """Have the write land that is under way for the longest."""
        self.store.under_way.pop(0)()
        self.inbox.work()

    def settle(self) -> None:
        """Answer and land whatever there is, until nothing is left; validations go first."""
        self.inbox.work()
        while self.validations or self.store.under_way:
            self.validate() if self.validations else self.land()


@pytest.fixture
def leader() -> Leader:
    leader = Leader()
    leader.put(a="0")
    leader.settle()
    assert leader.config == {"name": "c", **CLASS, "a": "0"}
    return leader


def test_every_one_of_many_patches_is_in_what_is_stored(leader: Leader) -> None:
    leader.answered = 0
    requests = [leader.patch(**{f"k{number}": "v"}) for number in range(10)]
    assert len(leader.validations) == 10, "they are checked at the same time"
    leader.settle()
    for number, request in enumerate(requests):
        assert request.result(0)["config"][f"k{number}"] == "v"
    assert leader.config == {"name": "c", **CLASS, "a": "0", **{f"k{number}": "v" for number in range(10)}}
    assert leader.answered == 19, "each but the first is checked once more"


@pytest.mark.parametrize("put_lands", ["before the check", "after it"])
def test_a_patch_changes_what_a_put_beside_it_has_made(leader: Leader, put_lands: str) -> None:
    patched, put = leader.patch(b="1", a=None), leader.put(a="2", c="3")
    leader.validations.reverse()
    leader.validate()
    if put_lands == "before the check":
        leader.land()
    leader.validate()
    leader.settle()
    assert put.result(0)[0] is False
    assert patched.result(0)["config"] == leader.config == {"name": "c", **CLASS, "b": "1", "c": "3"}


def test_a_put_after_a_patch_replaces_what_that_made(leader: Leader) -> None:
    patched, put = leader.patch(b="1"), leader.put(a="2")
    leader.settle()
    assert patched.done()
    assert put.result(0)[1]["config"] == leader.config == {"name": "c", **CLASS, "a": "2"}


def test_what_a_patch_makes_is_checked_as_it_is_stored(leader: Leader) -> None:
    put, patched = leader.put(invalid_with="b"), leader.patch(b="1")
    leader.validate()
    leader.land()
    leader.validate()
    number, inquiry = leader.validations[0]
    assert isinstance(inquiry, messages.ValidateConfig)
    assert inquiry.config == {"name": "c", **CLASS, "invalid_with": "b", "b": "1"}
    leader.validations[0] = number, messages.ValidateConfig({**inquiry.config, "invalid": "yes"}, {})
    leader.settle()
    assert put.done()
    assert isinstance(patched.exception(0), InvalidConnectorError)
    assert leader.config == {"name": "c", **CLASS, "invalid_with": "b"}


def test_a_patch_that_waits_for_its_turn_may_be_refused_without_harm_to_the_next(leader: Leader) -> None:
    first, second, third = leader.patch(b="1"), leader.patch(d="2"), leader.patch(e="3")
    for _ in range(3):
        leader.validate()
    leader.land()
    number, inquiry = leader.validations[0]
    assert isinstance(inquiry, messages.ValidateConfig)
    leader.validations[0] = number, messages.ValidateConfig({**inquiry.config, "invalid": "yes"}, {})
    leader.settle()
    assert isinstance(second.exception(0), InvalidConnectorError)
    assert first.done()
    assert third.result(0)["config"] == leader.config == {"name": "c", **CLASS, "a": "0", "b": "1", "e": "3"}


@pytest.mark.parametrize("lands", ["before the check", "after it"])
def test_a_deleted_connector_is_not_made_again_by_a_patch(leader: Leader, lands: str) -> None:
    patched, deleted = leader.patch(b="1"), leader.delete()
    if lands == "before the check":
        leader.land()
    leader.settle()
    assert deleted.result(0) is None
    assert isinstance(patched.exception(0), NotFoundError)
    assert leader.config is None


def test_a_put_after_a_delete_makes_a_new_connector_and_says_so(leader: Leader) -> None:
    deleted, put = leader.delete(), leader.put(a="1")
    leader.settle()
    assert deleted.done()
    assert put.result(0)[0] is True


def test_a_connector_is_not_made_of_what_is_about_to_be_there(leader: Leader) -> None:
    leader.delete()
    leader.settle()
    put = leader.put(a="1")
    created = leader.ask(lambda request: leader.writes.create(request, "c", {**CLASS, "a": "2"}, None))
    leader.settle()
    assert put.result(0)[0] is True
    assert isinstance(created.exception(0), AlreadyExistsError)
    assert leader.config == {"name": "c", **CLASS, "a": "1"}


def test_a_deleted_connector_is_not_deleted_twice_or_stopped(leader: Leader) -> None:
    deleted, again, stopped = leader.delete(), leader.delete(), leader.stop()
    leader.settle()
    assert deleted.result(0) is None
    assert isinstance(again.exception(0), NotFoundError)
    assert isinstance(stopped.exception(0), NotFoundError)


def test_a_connector_that_is_about_to_be_stopped_gets_no_tasks(leader: Leader) -> None:
    stopped, published = leader.stop(), leader.publish()
    leader.settle()
    assert stopped.done()
    assert isinstance(published.exception(0), ConflictError)
    assert leader.store.connectors()["c"].task_configs == ()


def test_who_leads_no_more_writes_nothing_that_waited(leader: Leader) -> None:
    patched, deleted = leader.patch(b="1"), leader.delete()
    leader.place.is_leader = False
    leader.leadership.changed()
    leader.settle()
    assert deleted.done(), "it was on its way"
    assert isinstance(patched.exception(0), NotLeaderError)
