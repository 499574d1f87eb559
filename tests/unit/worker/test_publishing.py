"""Task configs on their way to the config store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from equipment.herding import Place, WorkedInbox
from worker.errors import RebalanceInProgressError
from worker.herder.leadership import Leadership
from worker.herder.publishing import Publishing
from worker.stores.config import MemoryConfigStore, SessionKey, TargetState

CONFIGS = ({"n": "0"}, {"n": "1"})


class FarLeader:
    """A leader that is asked over the network, and answers when the test says."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, str, Sequence[Mapping[str, str]]]] = []
        self.answers: list[Future[None]] = []

    def post_task_configs(
        self, url: str, connector: str, configs: Sequence[Mapping[str, str]], key: SessionKey | None
    ) -> Future[None]:
        self.posted.append((url, connector, configs))
        self.answers.append(Future())
        return self.answers[-1]

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        raise AssertionError(f"nobody fences {connector} here")


class Worker:
    """A publishing with all that stands around it."""

    def __init__(self, *, is_leader: bool) -> None:
        self.inbox, self.store, self.far = WorkedInbox(), MemoryConfigStore(), FarLeader()
        self.place = Place(is_leader=is_leader)
        leadership = Leadership(self.place, self.store, self.inbox)
        self.publishing = Publishing(self.store, self.place, leadership, self.inbox, self.far)
        leadership.changed()
        self.inbox.work()
        self.store.put_connector("source", {"name": "source"}, None)


def test_the_leader_keeps_them_itself() -> None:
    worker = Worker(is_leader=True)
    worker.publishing.publish("source", CONFIGS)
    worker.inbox.work()
    assert worker.store.connectors()["source"].task_configs == CONFIGS
    assert not worker.far.posted


def test_another_worker_has_the_leader_keep_them() -> None:
    worker = Worker(is_leader=False)
    worker.publishing.publish("source", CONFIGS)
    assert worker.far.posted == [("http://leader:8083/", "source", CONFIGS)]
    worker.far.answers[0].set_result(None)
    worker.inbox.work(seconds=100)
    assert len(worker.far.posted) == 1


def test_it_is_tried_again_with_longer_and_longer_waits() -> None:
    worker = Worker(is_leader=False)
    worker.publishing.publish("source", CONFIGS)
    for count, wait in enumerate((0.25, 0.5, 1.0), start=1):
        worker.far.answers[-1].set_exception(RebalanceInProgressError("between two leaders"))
        worker.inbox.work(seconds=0)
        worker.inbox.work(seconds=wait * 0.9)
        assert len(worker.far.posted) == count
        worker.inbox.work(seconds=wait * 0.2)
        assert len(worker.far.posted) == count + 1


def test_without_a_leader_it_waits_for_one() -> None:
    worker = Worker(is_leader=False)
    worker.place.leader_url = None
    worker.publishing.publish("source", CONFIGS)
    worker.inbox.work()
    assert not worker.far.posted
    worker.place.leader_url = "http://new:8083/"
    worker.inbox.work(seconds=1)
    assert [url for url, _, _ in worker.far.posted] == ["http://new:8083/"]


def test_what_the_connector_does_not_want_any_more_is_given_up() -> None:
    worker = Worker(is_leader=False)
    worker.publishing.publish("source", CONFIGS)
    worker.publishing.publish("source", ({"n": "2"},))
    worker.far.answers[0].set_exception(RebalanceInProgressError("between two leaders"))
    worker.inbox.work(seconds=10)
    assert [configs for _, _, configs in worker.far.posted] == [CONFIGS, ({"n": "2"},)]


def test_a_connector_that_was_stopped_meanwhile_gets_no_tasks() -> None:
    worker = Worker(is_leader=False)
    worker.publishing.publish("source", CONFIGS)
    worker.store.put_target_state("source", TargetState.STOPPED)
    worker.far.answers[0].set_exception(RebalanceInProgressError("between two leaders"))
    worker.inbox.work(seconds=10)
    assert len(worker.far.posted) == 1
