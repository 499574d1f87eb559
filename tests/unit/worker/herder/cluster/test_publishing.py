"""Task configs on their way to the config store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

import pytest

from equipment.fakes.herding import Place, WorkedInbox
from worker.errors import BadRequestError, ForwardingError, RebalanceInProgressError
from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.publishing import Publications, Publishing
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.writes import Writes
from worker.peers.leader import Publication
from worker.stores.config.store import ConfigChange, MemoryConfigStore, SessionKey, TargetState, TasksChanged

CONFIG = {"name": "source"}
CONFIGS = ({"n": "0"}, {"n": "1"})
OTHERS = ({"n": "2"},)
URL = "http://leader:8083/"


class FarLeader:
    """A leader over the network: what is posted arrives, and is answered, when the test says; here is its herder."""

    def __init__(self, store: MemoryConfigStore, inbox: WorkedInbox) -> None:
        self.posted: list[tuple[str, str, Sequence[Mapping[str, str]]]] = []
        self.sent: list[tuple[Publication, Future[None]]] = []
        self.inbox, self.place = inbox, Place()
        leadership = Leadership(self.place, store, inbox)
        leadership.changed()
        self.writes = writes(store, self.place, leadership, inbox)

    def post_task_configs(
        self,
        url: str,
        connector: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication,
        key: SessionKey | None,
    ) -> Future[None]:
        self.posted.append((url, connector, configs))
        self.sent.append((publication, Future()))
        return self.sent[-1][1]

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        raise AssertionError(f"nobody fences {connector} here")

    def refuse(self, error: Exception) -> None:
        """Answer what was posted last with an error; what it is to do is done or not."""
        self.sent[-1][1].set_exception(error)
        self.inbox.work()

    def receive(self, number: int, publication: Publication | None = None) -> BaseException | None:
        """Let what was posted as this one arrive by now; what comes of it is its answer if there is none yet."""
        sent, answer = self.sent[number]
        _, connector, configs = self.posted[number]
        request = self.inbox.run(
            lambda request: self.writes.put_task_configs(request, connector, configs, publication or sent)
        )
        self.inbox.work()
        error = request.exception(0)
        if not answer.done():
            answer.set_exception(error) if error is not None else answer.set_result(None)
            self.inbox.work()
        return error


def writes(store: MemoryConfigStore, place: Place, leadership: Leadership, inbox: WorkedInbox) -> Writes:
    """The writes of a leader that validates nothing."""
    turns, nothing = ChangeQueue(leadership, inbox.post), None
    return Writes({}, store, place, _Known(store), leadership, nothing, inbox, turns)  # type: ignore[arg-type]


class _Known:
    """The connectors that there are, as far as task configs are concerned."""

    def __init__(self, store: MemoryConfigStore) -> None:
        self.entry = lambda name: store.connectors()[name]
        self.exists = lambda name: name in store.connectors()


class Worker:
    """A publishing with all that stands around it."""

    def __init__(self, *, is_leader: bool) -> None:
        self.inbox, self.store = WorkedInbox(), MemoryConfigStore()
        self.store.start(self._changed)
        self.far = FarLeader(self.store, self.inbox)
        self.place = Place(is_leader=is_leader)
        self.failed: list[tuple[str, str]] = []
        leadership = Leadership(self.place, self.store, self.inbox)
        self.writes = writes(self.store, self.place, leadership, self.inbox)
        self.publishing = Publishing(
            self.store,
            self.place,
            leadership,
            self.inbox,
            self.far,
            self.writes.put_task_configs,
            lambda name, reason: self.failed.append((name, reason)),
        )
        leadership.changed()
        self.inbox.work()
        self.store.put_connector("source", CONFIG, None)

    def _changed(self, change: ConfigChange) -> None:
        if isinstance(change, TasksChanged):
            self.publishing.look(change.name)

    @property
    def kept(self) -> tuple[Mapping[str, str], ...]:
        return self.store.connectors()["source"].task_configs

    def publish(self, configs: tuple[Mapping[str, str], ...]) -> None:
        self.publishing.publish("source", CONFIG, configs)

    def begin_generation(self, number: int) -> None:
        """Worker and leader are in this generation from now on."""
        self.place.generation = self.far.place.generation = number
        self.publishing.joined()


def test_the_leader_keeps_them_itself() -> None:
    worker = Worker(is_leader=True)
    worker.publish(CONFIGS)
    worker.inbox.work()
    assert worker.kept == CONFIGS
    assert not worker.far.posted


def test_the_leader_does_not_keep_them_in_the_midst_of_a_stop() -> None:
    """The task configs go first, and the connector, which still runs here, wants them again."""
    worker = Worker(is_leader=True)
    worker.publish(CONFIGS)
    worker.inbox.work()
    worker.inbox.run(lambda request: worker.writes.set_target_state(request, "source", TargetState.STOPPED))
    assert worker.kept == ()
    worker.publish(CONFIGS)
    worker.inbox.work(seconds=10)
    assert worker.store.connectors()["source"].target is TargetState.STOPPED
    assert worker.kept == ()


def test_another_worker_has_the_leader_keep_them() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    assert worker.far.posted == [(URL, "source", CONFIGS)]
    assert worker.far.receive(0) is None
    worker.inbox.work(seconds=100)
    assert len(worker.far.posted) == 1


def test_it_is_tried_again_with_longer_and_longer_waits() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    for count, wait in enumerate((0.25, 0.5, 1.0), start=1):
        worker.far.refuse(RebalanceInProgressError("between two leaders"))
        worker.inbox.work(seconds=wait * 0.9)
        assert len(worker.far.posted) == count
        worker.inbox.work(seconds=wait * 0.2)
        assert len(worker.far.posted) == count + 1


def test_without_a_leader_it_waits_for_one() -> None:
    worker = Worker(is_leader=False)
    worker.place.leader_url = None
    worker.publish(CONFIGS)
    worker.inbox.work()
    assert not worker.far.posted
    worker.place.leader_url = "http://new:8083/"
    worker.inbox.work(seconds=1)
    assert [url for url, _, _ in worker.far.posted] == ["http://new:8083/"]


def test_what_is_wanted_meanwhile_waits_and_the_newest_of_it_wins() -> None:
    worker = Worker(is_leader=False)
    for configs in (CONFIGS, ({"n": "dropped"},), OTHERS):
        worker.publish(configs)
    assert [configs for _, _, configs in worker.far.posted] == [CONFIGS], "one at a time"
    worker.far.receive(0)
    assert [configs for _, _, configs in worker.far.posted] == [CONFIGS, OTHERS]
    worker.far.receive(1)
    worker.inbox.work(seconds=100)
    assert worker.kept == OTHERS
    assert len(worker.far.posted) == 2


def test_what_was_given_up_does_not_come_after_what_is_newer() -> None:
    """A publication is not answered in time, and is still in the leader's queue."""
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.publish(OTHERS)
    worker.far.refuse(ForwardingError("no answer in time"))
    assert worker.far.receive(1) is None
    assert isinstance(worker.far.receive(0), RebalanceInProgressError)
    assert worker.kept == OTHERS


def test_what_was_kept_before_is_said_again_where_something_else_is_under_way() -> None:
    worker = Worker(is_leader=False)
    worker.store.put_task_configs("source", CONFIGS)
    worker.publish(OTHERS)
    worker.publish(CONFIGS)
    worker.far.receive(0)
    worker.far.receive(1)
    assert worker.kept == CONFIGS


def test_what_was_kept_before_is_said_again_where_the_answer_is_lost() -> None:
    worker = Worker(is_leader=False)
    worker.store.put_task_configs("source", CONFIGS)
    worker.publish(OTHERS)
    worker.publish(CONFIGS)
    worker.far.refuse(ForwardingError("no answer in time"))
    assert worker.far.receive(0) is None
    worker.inbox.work(seconds=1)
    worker.far.receive(1)
    assert worker.kept == CONFIGS


def test_a_former_owner_is_refused() -> None:
    """The connector runs elsewhere by the time that the publication arrives."""
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.far.place.generation += 1
    assert isinstance(worker.far.receive(0), RebalanceInProgressError)
    assert worker.kept == ()


def test_what_a_former_owner_got_through_does_not_stay() -> None:
    worker = Worker(is_leader=False)
    worker.store.put_task_configs("source", CONFIGS)
    worker.publish(CONFIGS)
    worker.store.put_task_configs("source", OTHERS)
    worker.inbox.work(seconds=1)
    worker.far.receive(0)
    assert worker.kept == CONFIGS


def test_a_new_leader_is_told_what_the_former_one_does_not_answer() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.place.leader_url = "http://new:8083/"
    worker.begin_generation(2)
    assert [url for url, _, _ in worker.far.posted] == [URL, "http://new:8083/"]
    assert worker.far.receive(1) is None
    worker.publish(OTHERS)
    assert isinstance(worker.far.receive(0), RebalanceInProgressError), "the former leader passes it on at last"
    worker.far.receive(2)
    assert worker.kept == OTHERS
    worker.inbox.work(seconds=100)
    assert len(worker.far.posted) == 3


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_generation_begins_without_a_word_where_everything_is_kept(is_answered: bool) -> None:
    """New task configs begin a new generation, often before their answer has come."""
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    if is_answered:
        worker.far.receive(0)
    else:
        worker.store.put_task_configs("source", CONFIGS)
    worker.begin_generation(2)
    worker.inbox.work(seconds=100)
    assert len(worker.far.posted) == 1


def test_a_connector_that_is_stopped_here_has_nothing_said_any_more() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.publishing.forget("source")
    worker.far.refuse(ForwardingError("no answer in time"))
    worker.inbox.work(seconds=100)
    assert len(worker.far.posted) == 1


def test_a_connector_that_was_stopped_meanwhile_gets_no_tasks() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.store.put_target_state("source", TargetState.STOPPED)
    worker.far.refuse(RebalanceInProgressError("between two leaders"))
    worker.inbox.work(seconds=10)
    assert len(worker.far.posted) == 1


def test_what_is_made_of_a_former_configuration_is_not_said_again() -> None:
    worker = Worker(is_leader=False)
    worker.publish(CONFIGS)
    worker.store.put_connector("source", {**CONFIG, "topic": "t"}, None)
    worker.far.refuse(RebalanceInProgressError("between two leaders"))
    worker.inbox.work(seconds=10)
    assert len(worker.far.posted) == 1


@pytest.mark.parametrize("signs", [True, False])
def test_what_the_leader_calls_wrong_fails_the_connector_unless_the_key_was_missing(signs: bool) -> None:
    worker = Worker(is_leader=False)
    if signs:
        worker.store.put_session_key(SessionKey(b"k", "HmacSHA256", 0))
    worker.publish(CONFIGS)
    worker.far.refuse(BadRequestError("These are larger than a record of the config topic may be."))
    worker.inbox.work(seconds=10)
    reason = "Its task configs cannot be stored: These are larger than a record of the config topic may be."
    assert worker.failed == ([("source", reason)] if signs else [])
    assert len(worker.far.posted) == (1 if signs else 2)


class TestPublications:
    """What the leader takes."""

    @pytest.mark.parametrize(
        ("sent", "taken"),
        [
            (["1 a 1", "1 a 2"], ["1 a 1", "1 a 2"]),
            (["1 a 2", "1 a 1", "1 a 2"], ["1 a 2"]),
            (["2 a 1", "0 a 1"], []),
            # A static member that was restarted keeps its generation.
            (["1 a 7", "1 b 1", "1 a 8", "1 b 2"], ["1 a 7", "1 b 1", "1 b 2"]),
        ],
    )
    def test_none_is_taken_after_a_newer_one(self, sent: list[str], taken: list[str]) -> None:
        publications = Publications()
        assert [text for text in sent if is_taken(publications, text, generation=1)] == taken

    def test_a_generation_begins_anew(self) -> None:
        publications = Publications()
        assert is_taken(publications, "1 a 7", generation=1)
        assert is_taken(publications, "2 a 1", generation=2)
        assert not is_taken(publications, "1 a 8", generation=2)

    def test_a_connector_that_is_made_again_begins_anew(self) -> None:
        publications = Publications()
        assert is_taken(publications, "1 a 7", generation=1)
        publications.forget("c")
        assert is_taken(publications, "1 a 1", generation=1)


def is_taken(publications: Publications, text: str, generation: int) -> bool:
    try:
        publications.take("c", Publication.parse(text), generation)
    except RebalanceInProgressError:
        return False
    return True
