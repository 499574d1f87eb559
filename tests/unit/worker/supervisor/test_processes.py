"""The supervisor with real processes that do what plugins should not (invariant I7)."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue

import pytest

from equipment.scripts import children
from equipment.waiting import wait_until
from equipment.workers.processes import runs
from worker.messages import messages
from worker.messages.messages import Command
from worker.supervisor.fork_client import fork_client
from worker.supervisor.lifecycle import Phase
from worker.supervisor.notices import Answered, Changed, Notice, Published
from worker.supervisor.process import ForkServerLauncher
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

pytestmark = pytest.mark.slow

TASK, OTHER = Unit("c", 0), Unit("c", 1)
DEADLINE = 20.0
GRACE = 0.3

Answer = Callable[[Command], None]

WORKER = """
import logging, sys
from queue import SimpleQueue
from equipment.scripts import children
from worker.messages import messages
from worker.supervisor.fork_client import fork_client
from worker.processes.lease import Lease
from worker.supervisor.lifecycle import Phase
from worker.processes.clock import Moment
from worker.supervisor.process import ForkServerLauncher
from worker.supervisor.supervisor import Supervisor
from worker.unit import Unit

does, file, leased = sys.argv[1:]
fork_client().start()
lease = Lease()
started = []
logging.getLogger("worker.supervisor.supervisor").addFilter(lambda record: started.append(record.args[0]))
logging.getLogger().setLevel(logging.INFO)
notices = SimpleQueue()
launcher = ForkServerLauncher(children.main, lease.path if leased else None)
supervisor = Supervisor(launcher, notices.put, print, 60.0)
supervisor.start_thread()
unit = Unit("c", 0)
supervisor.start(unit, messages.RunTask("c", 0, {"does": does, "file": file}, {}, {}, paused=False))
while getattr(notices.get(), "phase", None) is not Phase.RUNNING:
    pass
supervisor.command(unit, messages.Pause())
while does.endswith("worker") and getattr(notices.get(), "phase", None) is not Phase.PAUSED:
    pass
print(started[0], fork_client().pid, flush=True)
sys.stdin.readline()
lease.renew(Moment.now())
sys.stdin.readline()
"""


class World:
    """A supervisor of processes, and what it has told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "pid"
        self.begins_at_once = False
        self.notices: SimpleQueue[Notice] = SimpleQueue()
        self.asked: SimpleQueue[tuple[messages.ReadOffsets | messages.CommitOffsets, Future[Command]]] = SimpleQueue()
        self.supervisor = Supervisor(
            ForkServerLauncher(children.main),
            self.notices.put,
            self._serve,
            GRACE,
        )
        self.supervisor.start_thread()

    def _serve(self, request: messages.ReadOffsets | messages.CommitOffsets, _connector: str) -> Future[Command]:
        answer: Future[Command] = Future()
        if self.begins_at_once:
            assert answer.set_running_or_notify_cancel()
        self.asked.put((request, answer))
        return answer

    def start(self, does: str, unit: Unit = TASK, **config: str) -> None:
        props = {"does": does, "file": str(self.file), **config}
        self.supervisor.start(unit, messages.RunTask(unit.connector, unit.task, props, {}, {}, paused=False))

    def change(self, unit: Unit = TASK) -> Changed:
        """The next change of a unit."""
        while True:
            notice = self.notices.get(timeout=DEADLINE)
            if isinstance(notice, Changed) and notice.unit == unit:
                return notice

    def wait_for(self, phase: Phase, unit: Unit = TASK) -> Changed:
        while (change := self.change(unit)).phase is not phase:
            pass
        return change

    def phases_until_another_has_come_and_gone(self) -> list[Phase]:
        """What became of the task until another was started and stopped."""
        self.supervisor.start(OTHER, messages.RunTask("c", 1, {"does": "well"}, {}, {}, paused=False))
        phases = []
        while True:
            notice = self.notices.get(timeout=DEADLINE)
            if isinstance(notice, Changed) and notice.unit == TASK:
                phases.append(notice.phase)
            elif isinstance(notice, Changed) and notice.phase is Phase.RUNNING:
                self.supervisor.stop(OTHER)
            elif isinstance(notice, Changed) and notice.phase is Phase.GONE:
                return phases

    def still_serves(self) -> None:
        """The supervisor lives, and starts and stops another unit."""
        self.start("well", OTHER)
        self.wait_for(Phase.RUNNING, OTHER)
        self.supervisor.stop(OTHER)
        self.wait_for(Phase.GONE, OTHER)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.supervisor.close()
    if world.file.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(world.file.read_text()), signal.SIGKILL)


def test_the_last_words_of_a_process_that_is_gone_are_heard(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world.start("last_words")
        assert world.change() == Changed(TASK, Phase.FAILED, "the last word", None)
    lines = [record.getMessage() for record in caplog.records if record.name == "a.plugin"]
    assert lines == [f"line {number}" for number in range(children.LOG_LINES)]


def test_a_plugin_that_exits_has_failed(world: World) -> None:
    world.start("exit")
    assert world.change().trace == "The process of c|task-0 exited with status 0 without having said why."


@pytest.mark.parametrize(
    ("does", "how"),
    [
        ("exit", "exited with status 0 without having said why"),
        ("crash", "was killed by SIGSEGV without having said why"),
        ("close_and_linger", "closed its pipe, and was killed"),
    ],
)
def test_an_inquiry_without_an_answer_tells_how_its_process_ended(world: World, does: str, how: str) -> None:
    world.supervisor.inquire(1, messages.ValidateConfig({"does": does}, {}))
    answered = wait_until("it is answered", lambda: _answered(world.notices.get(timeout=DEADLINE)))
    assert answered == Answered(1, messages.Failed(f"The process ended without an answer: it {how}."))


def test_what_a_process_prints_when_it_crashes_is_heard_if_it_ends_while_it_is_listened_to(tmp_path: Path) -> None:
    launcher, cue = ForkServerLauncher(children.main), tmp_path / "cue"
    child = launcher.launch("crashes")
    child.send(messages.ValidateConfig({"does": "close_and_crash", "file": str(cue)}, {}))
    wait_until("it has closed its pipe", child.pipe.is_cut)
    listening = child.receive()
    first = next(listening)
    assert isinstance(first, messages.LogRecord)
    assert first.text == "closes"
    assert child.sentinel is not None
    cue.touch()
    assert select.select([child.sentinel], [], [], DEADLINE)[0], "it has ended"
    assert list(listening) == []
    wait_until("all is heard", lambda: child.gone() or list(child.receive()))
    assert child.join() == "was killed by SIGSEGV"
    assert (child.crash or "").startswith("Fatal Python error: Segmentation fault")


def test_a_death_is_noticed_although_a_grandchild_holds_the_pipe(world: World) -> None:
    world.start("leave_a_grandchild")
    change = world.wait_for(Phase.FAILED)
    assert change.trace == "The process of c|task-0 was killed by SIGKILL without having said why."
    assert not runs(int(world.file.read_text())), "the grandchild is gone, too"
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)


def test_a_killed_unit_is_gone_although_a_grandchild_holds_the_pipe(world: World) -> None:
    world.start("hang_with_a_grandchild")
    world.wait_for(Phase.RUNNING)
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)
    assert not runs(int(world.file.read_text()))


def test_what_a_plugin_starts_ends_with_its_unit_wherever_it_is(world: World) -> None:
    world.start("start_a_daemon")
    world.wait_for(Phase.RUNNING)
    daemon = int(world.file.read_text())
    assert runs(daemon)
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)
    assert not runs(daemon)


@pytest.mark.parametrize("does", ["start_a_daemon", "start_a_daemon_and_hang"])
def test_what_a_plugin_started_ends_when_its_unit_is_killed(world: World, does: str) -> None:
    world.start(does)
    world.wait_for(Phase.RUNNING)
    world.supervisor.kill(TASK)
    change = world.wait_for(Phase.FAILED)
    assert change.trace == "The process of c|task-0 was killed by SIGKILL without having said why."
    assert not runs(int(world.file.read_text()))


def test_signals_end_what_a_plugin_starts_and_not_its_unit(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world.start("tell_signals")
        told = wait_until("it is told", lambda: _published(world.notices.get(timeout=DEADLINE)))
    # A process that is forked has Python's own handler of SIGINT, which raises where nobody catches.
    assert told.configs == (
        {"program SIGTERM": "-15", "forked SIGTERM": "-15", "program SIGINT": "-2", "forked SIGINT": "1"},
    )
    world.wait_for(Phase.RUNNING)
    pid = pid_of(TASK, caplog)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(pid, number)
    world.supervisor.stop(TASK)
    assert world.change() == Changed(TASK, Phase.STOPPING, None, "1")
    assert world.change().phase is Phase.GONE
    assert "did not stop" not in caplog.text


def test_a_unit_is_a_process_group_that_no_terminal_reaches(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        world.start("well")
        world.wait_for(Phase.RUNNING)
    pid, server = pid_of(TASK, caplog), fork_client().pid
    assert server is not None
    assert os.getsid(pid) == os.getpgid(pid) == pid
    assert os.getsid(server) == server != os.getsid(0)


def test_without_its_fork_server_a_unit_goes_on_and_others_are_started(world: World) -> None:
    world.start("start_a_daemon")
    world.wait_for(Phase.RUNNING)
    daemon, server = int(world.file.read_text()), fork_client().pid
    assert server is not None
    os.kill(server, signal.SIGKILL)
    wait_until("the fork server is gone", lambda: not runs(server))
    # One was started ahead.
    for task in (1, 2):
        world.start("well", Unit("c", task))
        world.wait_for(Phase.RUNNING, Unit("c", task))
    assert fork_client().pid != server
    assert runs(daemon)
    world.supervisor.kill(TASK)
    world.wait_for(Phase.FAILED)
    wait_until("what its process started is gone", lambda: not runs(daemon))


@pytest.mark.parametrize("does", ["start_a_daemon", "start_a_daemon_and_hang"])
def test_a_killed_worker_leaves_nothing(tmp_path: Path, does: str) -> None:
    """A process of a plugin that hangs cannot look for its worker, and its fork server does that."""
    with worker_process(tmp_path, does, lease="") as (worker, daemon, child, server):
        worker.kill()
        worker.wait(DEADLINE)
        wait_until("nothing is left", lambda: not any(map(runs, (daemon, child, server))))


def test_a_killed_worker_and_a_killed_fork_server_leave_nothing(tmp_path: Path) -> None:
    does = "start_a_daemon_and_look_after_the_worker"
    with worker_process(tmp_path, does, lease="") as (worker, daemon, child, server):
        os.kill(server, signal.SIGKILL)
        worker.kill()
        worker.wait(DEADLINE)
        wait_until("nothing is left", lambda: not any(map(runs, (daemon, child, server))))


def test_what_a_plugin_started_ends_with_the_lease(tmp_path: Path) -> None:
    with worker_process(tmp_path, "start_a_daemon", lease="lease") as (worker, daemon, child, server):
        assert worker.stdin is not None
        worker.stdin.write("end\n")
        worker.stdin.flush()
        wait_until("they are gone", lambda: not any(map(runs, (daemon, child))))
        assert runs(server)


@pytest.mark.parametrize("does", ["half_a_message", "close_the_pipe", "thread_that_never_ends", "print"])
def test_what_a_plugin_does_to_its_process_does_not_hold_up_the_others(world: World, does: str) -> None:
    world.start(does)
    world.wait_for(Phase.RUNNING)
    world.still_serves()
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)


def test_a_process_that_does_not_listen_does_not_hold_up_the_others(world: World) -> None:
    world.start("deaf")
    world.wait_for(Phase.RUNNING)
    for _ in range(8):
        world.supervisor.command(TASK, messages.OffsetsRead(0, [{"o": "x" * 1_000_000}], None))
    world.still_serves()


@pytest.mark.parametrize(
    ("does", "trace"),
    [
        ("twice", "a connector or task that is RUNNING cannot be started"),
        ("wrong_types", "Its process sent an invalid message"),
        ("endless", "at most 67108864 are allowed"),
        ("babble_after_failure", "first"),
    ],
)
def test_a_process_that_breaks_the_protocol_has_failed(world: World, does: str, trace: str) -> None:
    world.start(does)
    assert trace in str(world.wait_for(Phase.FAILED).trace)
    world.still_serves()
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)


def test_a_long_trace_arrives_whole(world: World) -> None:
    world.start("big")
    assert len(world.wait_for(Phase.FAILED).trace or "") == children.BIG


def test_an_answer_for_a_process_that_is_gone_does_not_reach_the_next_one(world: World) -> None:
    world.start("asks_and_dies")
    world.wait_for(Phase.FAILED)
    old, answer_old = world.asked.get(timeout=DEADLINE)
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)
    world.start("asks")
    new, answer_new = world.asked.get(timeout=DEADLINE)
    assert (old.request, new.request) == (0, 0), "each process counts from 0"
    answer_old.set_result(messages.OffsetsRead(0, [{"o": 3}], None))
    answer_new.set_result(messages.OffsetsRead(0, [{"o": 5}], None))
    published = wait_until("the answer is here", lambda: _published(world.notices.get(timeout=DEADLINE)))
    assert published.configs == ({"answer": str(messages.OffsetsRead(0, [{"o": 5}], None))},)


@pytest.mark.parametrize("does", ["commits", "commits_and_dies"])
def test_a_commit_that_is_not_begun_is_not_made_when_its_process_is_gone(world: World, does: str) -> None:
    world.start(does)
    _, commit = world.asked.get(timeout=DEADLINE)
    world.supervisor.stop(TASK)
    world.wait_for(Phase.GONE)
    assert commit.cancelled(), "another process of the unit may have committed what is newer"


@pytest.mark.parametrize("does", ["commits", "commits_and_dies"])
def test_a_unit_is_not_gone_before_a_commit_that_was_begun_has_ended(world: World, does: str) -> None:
    world.begins_at_once = True
    world.start(does)
    _, commit = world.asked.get(timeout=DEADLINE)
    world.supervisor.stop(TASK)
    wait_until("its process is gone", lambda: not runs(int(world.file.read_text())))
    assert Phase.GONE not in world.phases_until_another_has_come_and_gone()
    commit.set_result(messages.OffsetsCommitted(0, None))
    world.wait_for(Phase.GONE)


def test_without_open_files_for_it_a_unit_has_failed_and_the_others_are_served(world: World) -> None:
    world.start("well")
    world.wait_for(Phase.RUNNING)
    # One is started ahead, and what this process still had under way may leave room for another.
    more = [Unit("more", number) for number in range(8)]
    with no_more_open_files():
        for unit in more:
            world.start("well", unit)
        trace = str(world.wait_for(Phase.FAILED, more[-1]).trace)
        assert "could not be started" in trace
        assert "ulimit -n" in trace
        world.supervisor.inquire(1, messages.ValidateConfig({}, {}))
        answered = wait_until("it is answered", lambda: _answered(world.notices.get(timeout=DEADLINE)))
        assert "could not be started" in str(answered.report)
        world.supervisor.stop(TASK)
        world.wait_for(Phase.GONE)
    world.supervisor.stop(more[-1])
    world.wait_for(Phase.GONE, more[-1])
    world.still_serves()


@contextlib.contextmanager
def no_more_open_files() -> Iterator[None]:
    """Let this process open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(file.name) for file in Path("/proc/self/fd").iterdir()), hard))
    gc.collect()
    opened: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in opened:
            os.close(descriptor)


@contextlib.contextmanager
def worker_process(folder: Path, does: str, lease: str) -> Iterator[tuple[subprocess.Popen[str], int, int, int]]:
    """A worker in a process of its own with one unit; what that has started, its process, and its fork server."""
    command = [sys.executable, "-c", WORKER, does, str(folder / "pid"), lease]
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as worker:
        assert worker.stdout is not None
        try:
            child, server = map(int, worker.stdout.readline().split())
            yield worker, int((folder / "pid").read_text()), child, server
        finally:
            worker.kill()


def pid_of(unit: Unit, caplog: pytest.LogCaptureFixture) -> int:
    """The process that runs a unit."""
    lines = [record for record in caplog.records if record.msg == "process %s runs %s"]
    return next(int(str(line.args[0])) for line in lines if line.args and line.args[1] == unit)  # type: ignore[index]


def _answered(notice: Notice) -> Answered | None:
    return notice if isinstance(notice, Answered) else None


def _published(notice: Notice) -> Published | None:
    return notice if isinstance(notice, Published) else None


def _forks(tmp_path: Path, code: str) -> str:
    """What code prints that has ``client``, its process's client, and ``fork()``, which waits for a child's end."""
    given = """
import os, signal, sys
from worker.supervisor.fork_client import fork_client

client = fork_client()

def fork():
    reads, writes = os.pipe()
    child = client.fork(print, reads, 1, None, "child")
    return os.read(child.status, 10).decode()
"""
    command = [sys.executable, "-P", "-c", f"{given}\n{code}"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        command, cwd=tmp_path, env=environ, check=True, timeout=DEADLINE, stdout=subprocess.PIPE, text=True
    ).stdout


def test_the_fork_server_imports_nothing_from_the_working_folder(tmp_path: Path) -> None:
    """A file sink could have put it there."""
    (tmp_path / "json.py").write_text("open('ran', 'w')\n")
    assert "Connection" in _forks(tmp_path, "assert fork() == '0'")
    assert not (tmp_path / "ran").exists()


def test_a_fork_server_that_was_forked_and_is_gone_is_replaced_by_one_that_is_executed(tmp_path: Path) -> None:
    code = """
client.start()
first = client.pid
assert fork() == "0" and os.getsid(first) == first
os.kill(first, signal.SIGKILL)
try:
    fork()
except EOFError:
    pass
assert fork() == "0"
print(client.pid == first)
client.close()
"""
    assert _forks(tmp_path, code).splitlines()[-1] == "False"


@pytest.mark.parametrize("start", ["client.start()", "pass"], ids=["forked", "executed"])
def test_children_start_and_end_where_the_signal_of_their_end_is_ignored(tmp_path: Path, start: str) -> None:
    """As by a program that has started the worker so."""
    code = f"""
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
{start}
assert [fork() for _ in range(3)] == ["0"] * 3
print(client.pid)
client.close()
"""
    assert int(_forks(tmp_path, code).splitlines()[-1])


def test_the_fork_server_keeps_no_descriptor_of_the_worker(tmp_path: Path) -> None:
    """A lock that the starter of a worker holds for it must not outlive the worker."""
    code = """
reads, writes = os.pipe()
os.set_inheritable(writes, True)
client.start()
fork()
os.close(writes)
print(os.read(reads, 1))
client.close()
"""
    assert _forks(tmp_path, code).splitlines()[-1] == "b''"
