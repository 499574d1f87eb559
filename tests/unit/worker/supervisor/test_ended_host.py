"""A host that has ended, which nobody has heard yet."""

from __future__ import annotations

from multiprocessing.connection import Connection, Pipe
from typing import Any

from worker.supervisor.hosts.hosts import Hosts
from worker.supervisor.messages import messages
from worker.supervisor.process import Piped
from worker.unit import Unit


class Process(Piped):
    """A child whose other end the test has."""

    pid = 1

    def __init__(self) -> None:
        ours, self.theirs = Pipe()
        super().__init__(ours)


class Launcher:
    """Starts processes, the first of which has ended at once."""

    def __init__(self) -> None:
        self.processes: list[Process] = []

    def launch(self, *_: object) -> Process:
        self.processes.append(Process())
        if len(self.processes) == 1:
            self.processes[0].theirs.close()
        return self.processes[-1]

    def home(self, _: object) -> str:
        return ""


def heard(pipe: Connection) -> Any:
    return messages.decode(pipe.recv_bytes())


def test_a_unit_that_comes_to_a_host_which_has_ended_lives_in_another() -> None:
    launcher: Any = Launcher()
    hosts = Hosts(launcher)
    worker = {"task.isolation": "shared"}
    units = [Unit("a"), Unit("b")]
    children = [hosts.launch(unit, messages.RunConnector(unit.connector, {}, worker)) for unit in units]
    assert [child.shares and not child.gone() for child in children] == [True, True]
    assert len(launcher.processes) == 2, "both live in the second"
    assert isinstance(heard(launcher.processes[1].theirs), messages.RunUnits)
    for child in children:
        child.pipe.close()
    launcher.processes[0].pipe.close()
    launcher.processes[1].pipe.close()
    launcher.processes[1].theirs.close()
