"""Children of a supervisor whose first command says what to do; a fork server can import them from here."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from worker.messages import messages
from worker.messages.messages import Command, Report, decode, encode
from worker.processes.lease import watch_lease
from worker.runtime.link import Line, Link

__all__ = ["main"]

LOG_LINES = 2_000
BIG = 8 * 1024 * 1024


def main(connection: Connection, lease: str | None = None) -> None:
    """Speak the protocol; the config's ``does`` names the action, ``file`` where to report it."""
    if lease is not None:
        watch_lease(lease)
    first: Any = decode(connection.recv_bytes())
    _DEEDS[first.config["does"]](connection, first.config)


def say(connection: Connection, report: Report) -> None:
    """Send one report."""
    connection.send_bytes(encode(report))


def serve(connection: Connection, on_command: Callable[[Command], None] = lambda command: None) -> None:
    """Take commands until a stop arrives or the worker is gone."""
    while not isinstance(command := decode(connection.recv_bytes()), messages.Stop):
        on_command(command)


def _well(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.Started("1"))
    serve(connection)


def _last_words(connection: Connection, config: dict[str, str]) -> None:
    for number in range(LOG_LINES):
        say(connection, messages.LogRecord("a.plugin", logging.INFO, 0.0, f"line {number}"))
    say(connection, messages.Failed("the last word"))
    os._exit(7)


def _exit(connection: Connection, config: dict[str, str]) -> None:
    os._exit(0)


def _crash(connection: Connection, config: dict[str, str]) -> None:
    """Crash like a library that writes to invalid memory."""
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)


def _close_and_crash(connection: Connection, config: dict[str, str]) -> None:
    """Close the pipe and, on a cue, crash as Python does, with the stacks of all threads."""
    faulthandler.enable()
    print("closes", flush=True)
    connection.close()
    while not Path(config["file"]).exists():
        time.sleep(0.01)
    faulthandler._sigsegv()  # type: ignore[attr-defined]


def _leave_a_grandchild(connection: Connection, config: dict[str, str]) -> None:
    """Exit while a process that was forked from this one holds the pipe open."""
    say(connection, messages.Started("1"))
    if (grandchild := os.fork()) == 0:
        time.sleep(3600)
    _note(config, grandchild)
    os.kill(os.getpid(), signal.SIGKILL)


def _hang_with_a_grandchild(connection: Connection, config: dict[str, str]) -> None:
    if (grandchild := os.fork()) == 0:
        time.sleep(3600)
    _note(config, grandchild)
    say(connection, messages.Started("1"))
    time.sleep(3600)


def _start_a_daemon(connection: Connection, config: dict[str, str]) -> None:
    """Start a process that detaches itself like a daemon."""
    _daemon(config)
    _well(connection, config)


def _daemon(config: dict[str, str]) -> None:
    """A process in its own session whose parent has ended, and which ignores signals to end."""
    if os.fork() == 0:
        os.setsid()
        if (daemon := os.fork()) != 0:
            _note(config, daemon)
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    os.wait()


def _start_a_daemon_and_hang(connection: Connection, config: dict[str, str]) -> None:
    """The same, and then block all threads of this process."""
    _daemon(config)
    say(connection, messages.Started("1"))
    ctypes.PyDLL(None).sleep(3600)


def _start_a_daemon_and_look_after_the_worker(connection: Connection, config: dict[str, str]) -> None:
    """The same, and read commands as a task does."""
    _daemon(config)
    say(connection, messages.Started("1"))
    link = Link(Line(connection))
    link.open()
    link.send(messages.Paused())
    time.sleep(3600)


def _tell_signals(connection: Connection, config: dict[str, str]) -> None:
    """Report whether signals end a program and a forked process that are started from here."""
    ends: dict[str, str] = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        program = subprocess.Popen(["sleep", "3600"])
        program.send_signal(number)
        ends[f"program {number.name}"] = str(program.wait(10))
        if (forked := os.fork()) == 0:
            os.kill(os.getpid(), number)
            os._exit(77)
        ends[f"forked {number.name}"] = str(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]))
    say(connection, messages.TaskConfigs([ends]))
    _well(connection, config)


def _half_a_message(connection: Connection, config: dict[str, str]) -> None:
    """Stop for ever in the middle of a message."""
    whole = encode(messages.LogRecord("a.plugin", logging.INFO, 0.0, "x" * 1000))
    say(connection, messages.Started("1"))
    os.write(connection.fileno(), len(whole).to_bytes(4, "big") + whole[:500])
    time.sleep(3600)


def _deaf(connection: Connection, config: dict[str, str]) -> None:
    """Never read the worker's commands."""
    say(connection, messages.Started("1"))
    time.sleep(3600)


def _close_the_pipe(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.Started("1"))
    connection.close()
    time.sleep(3600)


def _close_and_linger(connection: Connection, config: dict[str, str]) -> None:
    connection.close()
    time.sleep(3600)


def _twice(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.Started("1"))
    say(connection, messages.Started("1"))
    serve(connection)


def _wrong_types(connection: Connection, config: dict[str, str]) -> None:
    connection.send_bytes(b'["LogRecord",{"logger":"a","level":"loud","created":0,"text":"x"}]')
    serve(connection)


def _babble_after_failure(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.Failed("first"))
    connection.send_bytes(b"not a message")
    time.sleep(3600)


def _endless(connection: Connection, config: dict[str, str]) -> None:
    """Announce a message that is too large for any memory."""
    os.write(connection.fileno(), (2**31 - 1).to_bytes(4, "big") + b"x" * 1000)
    time.sleep(3600)


def _big(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.Failed("x" * BIG))


def _print(connection: Connection, config: dict[str, str]) -> None:
    print("printed by a plugin")
    sys.stdout.flush()
    subprocess.run(["true"], check=True)
    _well(connection, config)


def _thread_that_never_ends(connection: Connection, config: dict[str, str]) -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()
    _well(connection, config)


def _asks_and_dies(connection: Connection, config: dict[str, str]) -> None:
    say(connection, messages.ReadOffsets(0, [{"p": 1}]))


def _commits(connection: Connection, config: dict[str, str]) -> None:
    """Commit once, and end on request, with or without an answer."""
    _note(config, os.getpid())
    say(connection, messages.Started("1"))
    say(connection, messages.CommitOffsets(0, [({"p": 1}, {"o": 1})]))
    serve(connection, lambda _: None)


def _commits_and_dies(connection: Connection, config: dict[str, str]) -> None:
    _note(config, os.getpid())
    say(connection, messages.CommitOffsets(0, [({"p": 1}, {"o": 1})]))


def _asks(connection: Connection, config: dict[str, str]) -> None:
    """Send one request, with the number with which every process begins, and report the answer."""
    say(connection, messages.Started("1"))
    say(connection, messages.ReadOffsets(0, [{"p": 2}]))
    serve(connection, lambda command: say(connection, messages.TaskConfigs([{"answer": str(command)}])))


def _note(config: dict[str, str], pid: int) -> None:
    with open(config["file"], "w") as stream:  # noqa: PTH123 - kept as small as a plugin's
        stream.write(str(pid))


_DEEDS: dict[str, Callable[[Connection, dict[str, str]], None]] = {
    deed.__name__.removeprefix("_"): deed
    for deed in (
        _well,
        _last_words,
        _exit,
        _crash,
        _close_and_crash,
        _leave_a_grandchild,
        _hang_with_a_grandchild,
        _start_a_daemon,
        _start_a_daemon_and_hang,
        _start_a_daemon_and_look_after_the_worker,
        _tell_signals,
        _half_a_message,
        _deaf,
        _close_the_pipe,
        _close_and_linger,
        _twice,
        _wrong_types,
        _babble_after_failure,
        _endless,
        _big,
        _print,
        _thread_that_never_ends,
        _asks_and_dies,
        _commits,
        _commits_and_dies,
        _asks,
    )
}
