"""What is shown of every connector is made again for those that have changed, and is right for all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect.internals.plugins import PluginRegistry
from equipment.fakes.inbox import Inbox
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.membership.membership import SoloMembership
from worker.metrics.measurements import Measurements
from worker.stores.config.store import MemoryConfigStore, TargetState
from worker.stores.status.store import MemoryStatusStore, State, Status
from worker.unit import Unit

RUNNING = Status(State.RUNNING, "here:1", 1)


class World:
    """Two connectors of a worker, ``a`` and ``b``, with a task each."""

    def __init__(self) -> None:
        self.configs, self.statuses = MemoryConfigStore(), MemoryStatusStore()
        self.measurements = Measurements("here:1", self.statuses, SoloMembership(), Inbox(), None)
        self.connectors = Connectors(
            self.configs, self.statuses, PluginRegistry.discover(()), TopicTracking(), self.measurements
        )
        for name in "ab":
            config = {"name": name, "connector.class": "FileStreamSource"}
            self.configs.put_connector(name, config, None)
            self.configs.put_task_configs(name, [config])
            for unit in (Unit(name), Unit(name, 0)):
                self.statuses.put(unit, RUNNING)

    def check(self) -> None:
        """See that the views are those that are made for each connector by itself."""
        shown = self.connectors.expanded()
        assert list(shown) == self.connectors.names()
        for name, views in shown.items():
            assert views["info"] == self.connectors.info(name)
            if "status" in views:
                assert views["status"] == self.connectors.status(name)
            else:
                assert Unit(name) not in self.statuses.statuses()


@pytest.fixture
def world() -> World:
    made = World()
    made.check()
    return made


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"connector.class": "FileStreamSink", "topics": "t"}, "sink"),
        ({"connector.class": "equipment.scripts.tasks.SomeConnector", "file": "f"}, "unknown"),
        ({"connector.class": "equipment.scripts.tasks.SomeConnector", "topics": "t"}, "unknown"),
        ({"connector.class": "equipment.scripts.tasks.SomeConnector", "topics.regex": "t.*"}, "unknown"),
        ({"connector.class": "nowhere.SomeConnector"}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_worker_that_validated_nothing_tells_the_type(world: World, config: dict[str, str], kind: str) -> None:
    world.configs.put_connector("c", {"name": "c", **config}, None)
    assert world.connectors.type("c") == kind


def test_every_change_is_seen(world: World) -> None:
    world.statuses.put(Unit("a", 0), replace(RUNNING, state=State.FAILED, trace="it broke"))
    world.check()
    assert world.connectors.expanded()["a"]["status"]["tasks"][0]["trace"] == "it broke"
    world.measurements.take(Unit("b", 0), {"records": 3.0})
    world.check()
    assert world.connectors.expanded()["b"]["status"]["tasks"][0]["metrics"] == {"records": 3.0}
    world.configs.put_connector("a", {"name": "a", "connector.class": "FileStreamSink"}, TargetState.PAUSED)
    world.check()
    assert world.connectors.expanded()["a"]["info"]["type"] == "sink"
    world.configs.put_connector("a", {"name": "a", "connector.class": "FileStreamSink"}, None, None, "source")
    world.check()
    assert world.connectors.expanded()["a"]["info"]["type"] == "source"


def test_what_is_gone_is_not_shown(world: World) -> None:
    world.statuses.remove(Unit("a", 0))
    world.check()
    assert world.connectors.expanded()["a"]["status"]["tasks"] == []
    world.statuses.remove(Unit("a"))
    world.check()
    assert list(world.connectors.expanded()["a"]) == ["info"]
    world.configs.remove_connector("a")
    world.connectors.forget("a")
    world.check()
    assert list(world.connectors.expanded()) == ["b"]


def test_statuses_of_what_is_no_connector_are_no_matter(world: World) -> None:
    world.statuses.put(Unit("c", 0), RUNNING)
    world.check()


def test_what_has_not_changed_is_not_made_again(world: World) -> None:
    before = world.connectors.expanded()
    world.statuses.put(Unit("a"), replace(RUNNING, generation=2, worker_id="there:1"))
    after = world.connectors.expanded()
    assert after["a"] is not before["a"]
    assert after["b"] is before["b"]
