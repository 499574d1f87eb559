"""A herder whose units say so much at once that it cannot look at everything after each word of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from connect.internals.plugins import PluginRegistry
from equipment.waiting import wait_until
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.stores.config.store import MemoryConfigStore
from worker.stores.offset.service import OffsetService
from worker.stores.status.store import MemoryStatusStore, State
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Notice, Published
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

CONNECTORS = 200


class Place(SoloMembership):
    """Counts how often everything is looked at: each time it is asked once what of all that is to run runs here."""

    def __init__(self) -> None:
        self.looks = 0

    def assigned(self, units: Iterable[Unit]) -> frozenset[Unit]:
        self.looks += 1
        return super().assigned(units)


class Processes:
    """A supervisor whose units run as soon as they are started."""

    def __init__(self, notify: Callable[[Notice], None]) -> None:
        self._notify = notify

    def start_thread(self) -> None:
        """There is none."""

    def start(self, unit: Unit, _command: messages.RunConnector | messages.RunTask) -> None:
        self._notify(Changed(unit, Phase.RUNNING, None, "1"))
        if not unit.is_task:
            self._notify(Published(unit.connector, ({"n": "0"}, {"n": "1"})))

    def set_log_level(self, name: str, level: int) -> None:
        """There is nothing that logs."""

    def inquire(self, request: int, inquiry: messages.Inquiry) -> None:
        """Nobody asks."""

    def give_up(self, request: int) -> None:
        """Nor waits."""

    def close(self) -> None:
        """Nothing runs."""


def test_what_many_units_say_at_once_is_looked_at_together() -> None:
    place, configs, statuses = Place(), MemoryConfigStore(), MemoryStatusStore()
    herder = Herder(
        WorkerSettings({}, "host:8083"),
        Stores(configs, statuses, cast("OffsetService", None)),
        Inbox(),
        place,
        lambda notify: cast("Supervisor", Processes(notify)),
        PluginRegistry([]),
    )
    for number in range(CONNECTORS):
        configs.put_connector(f"c{number}", {"name": f"c{number}"}, None)
    herder.start()
    try:
        wait_until("everything runs", lambda: list(_states(statuses)) == [State.RUNNING] * 3 * CONNECTORS)
        assert place.looks < CONNECTORS
    finally:
        herder.close()


def _states(statuses: MemoryStatusStore) -> Iterable[State]:
    return (status.state for status in statuses.statuses().values())
