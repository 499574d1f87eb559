"""Restarts of what was started with values that hold for a time only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from multiprocessing.connection import Pipe
from pathlib import Path

import pytest

from equipment.fakes.herding import WorkedInbox
from worker.herder.connectors.automatic_restarts import ExpiryRestarts
from worker.messages.messages import ConfigExpires, decode
from worker.runtime.assembly import Assembly
from worker.runtime.link import Line, Link
from worker.runtime.providers import reload_after_ttl
from worker.security.redaction import Redaction
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Changed, Expires
from worker.unit import Unit

CONNECTOR, TASK = Unit("c"), Unit("c", 0)
WORKER = {
    "bootstrap.servers": "a:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "config.providers": "p",
}


class Restarted:
    """A herder's timers, and what they restart."""

    def __init__(self) -> None:
        self.inbox = WorkedInbox()
        self.units: list[Unit] = []
        self.reloads = ExpiryRestarts(self._restart, self.inbox)

    def expires(self, unit: Unit, seconds: float) -> None:
        self.reloads.expires(Expires(unit, seconds))

    def becomes(self, unit: Unit, phase: Phase) -> None:
        self.reloads.changed(Changed(unit, phase, None, None))

    def after(self, seconds: float) -> list[Unit]:
        """What is restarted by the end of so many seconds more."""
        self.inbox.work(seconds)
        restarted, self.units = self.units, []
        return restarted

    def _restart(self, units: Iterable[Unit]) -> None:
        self.units += units


def test_each_unit_is_restarted_when_its_own_values_expire() -> None:
    herder = Restarted()
    herder.expires(CONNECTOR, 5)
    herder.expires(TASK, 7)
    assert herder.after(4.9) == []
    assert herder.after(0.2) == [CONNECTOR]
    assert herder.after(2) == [TASK]
    assert herder.after(100) == [], "what was restarted says itself when it expires again"


def test_the_first_value_that_expires_counts() -> None:
    herder = Restarted()
    herder.expires(TASK, 7)
    herder.expires(TASK, 3)
    assert herder.after(3.1) == [TASK]
    assert herder.after(10) == []


@pytest.mark.parametrize("phase", [Phase.GONE, Phase.DRAINED])
def test_what_has_ended_or_is_done_is_not_restarted(phase: Phase) -> None:
    herder = Restarted()
    herder.expires(CONNECTOR, 5)
    herder.expires(TASK, 5)
    herder.becomes(TASK, phase)
    herder.becomes(CONNECTOR, Phase.RUNNING)
    assert herder.after(6) == [CONNECTOR]


def test_what_has_failed_is_restarted_as_another_value_may_help() -> None:
    herder = Restarted()
    herder.expires(TASK, 5)
    herder.becomes(TASK, Phase.FAILED)
    assert herder.after(6) == [TASK]


def test_values_that_never_hold_do_not_make_a_unit_do_nothing_but_start() -> None:
    herder = Restarted()
    herder.expires(TASK, 0)
    assert herder.after(0.9) == []
    assert herder.after(0.2) == [TASK]


def test_values_that_hold_for_ever_are_waited_for() -> None:
    herder = Restarted()
    herder.expires(TASK, 2**63 / 1000)
    herder.expires(CONNECTOR, 5)
    assert herder.after(6) == [CONNECTOR]


@pytest.mark.parametrize(("config", "expected"), [({}, 70), ({"config.action.reload": "restart"}, 70)])
def test_a_process_says_for_how_long_its_values_hold(config: dict[str, str], expected: int) -> None:
    worker, child = Pipe()
    reload_after_ttl(Link(Line(child, lambda: None)), config)(expected)
    assert decode(worker.recv_bytes()) == ConfigExpires(expected)


def test_a_process_that_is_not_to_be_restarted_says_nothing() -> None:
    worker, child = Pipe()
    reload_after_ttl(Link(Line(child, lambda: None)), {"config.action.reload": "none"})(70)
    assert not worker.poll()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "db.properties").write_text("file=/a\n")
    (tmp_path / "file").write_text("/a")
    return tmp_path


@pytest.mark.parametrize(
    ("provider", "reference"),
    [
        ("FileConfigProvider", "${p:FOLDER/db.properties:file}"),
        ("DirectoryConfigProvider", "${p:FOLDER:file}"),
        ("EnvVarConfigProvider", "${p:PATH}"),
    ],
)
def test_the_ttl_of_every_provider_is_told_of_connectors_and_tasks(files: Path, provider: str, reference: str) -> None:
    worker = WORKER | {"config.providers.p.class": provider, "config.providers.p.param.ttl.ms": "5000"}
    props = {"connector.class": "FileStreamSource", "topic": "t"}
    referring = props | {"file": reference.replace("FOLDER", str(files))}
    assert ttls(worker, referring, props) == [5000]
    assert ttls(worker, props, referring) == [5000], "a task may refer to what its connector does not"
    assert ttls(worker | {"client.id": referring["file"]}, props, props) == [], (
        "the worker's own are not of a connector"
    )
    del worker["config.providers.p.param.ttl.ms"]
    assert ttls(worker, referring, referring) == []


def ttls(worker: Mapping[str, str], connector: Mapping[str, str], task: Mapping[str, str]) -> list[int]:
    told: list[int] = []
    Assembly.resolve(worker, connector, Redaction(), told.append).task_config(task)
    return told
