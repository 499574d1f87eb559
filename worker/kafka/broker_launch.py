"""Launching an embedded broker: Java, jars, storage, ports and properties brought together into a process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from connect.errors import ConnectError
from connect.home import sluice_home
from connect.jvm.jars import read_lock, resolve_jars
from connect.jvm.java import find_java
from worker.kafka.broker_archive import class_archive
from worker.kafka.broker_folder import BrokerFolder, BrokerState
from worker.kafka.broker_ports import choose_ports
from worker.kafka.broker_probe import is_ready
from worker.kafka.broker_process import (
    broker_mark,
    find_broker,
    is_broker,
    launch_daemon,
    signal_broker,
    tail,
    wait_gone,
)
from worker.kafka.broker_settings import BrokerConfig, is_plaintext, render_properties, server_properties
from worker.kafka.broker_storage import format_storage

__all__ = ["becomes_ready", "launch_broker"]

_JARS = Path(__file__).with_name("broker.jars")
_LOGGING = Path(__file__).with_name("log4j2.properties")
# A broker of this size is ready before the optimising compiler has paid for itself.
_JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
_POLL_SECONDS = 0.02
_KILL_SECONDS = 30.0
_PORT_TRIES = 3


def launch_broker(
    config: BrokerConfig, folder: BrokerFolder, last: BrokerState | None, environ: Mapping[str, str]
) -> BrokerState:
    """Start the broker of ``folder``, whose lock the caller holds, and wait until it is ready."""
    _clear_the_way(folder, last)
    if last is not None and last.partial_archive:
        Path(last.partial_archive).unlink(missing_ok=True)
    for _ in range(_PORT_TRIES):
        state = _launch(config, folder, last, environ)
        if becomes_ready(state, folder, config):
            return state
        if config.port or not _lost_its_port(folder):
            break
        last = None
    raise ConnectError(f"The embedded broker ended while it started. {_where_to_look(folder)}")


def becomes_ready(state: BrokerState, folder: BrokerFolder, config: BrokerConfig) -> bool:
    """Wait until the broker answers, and tell whether it does or has ended.

    One that does neither in time is killed, and the ``ConnectError`` has the end of its log.
    """
    mark = broker_mark(folder.data)
    plaintext = is_plaintext(state.properties)
    deadline = time.monotonic() + config.start_timeout
    while not is_ready(state.ports.broker, plaintext=plaintext):
        if not is_broker(state.pid, mark):
            return False
        if time.monotonic() >= deadline:
            signal_broker(state.pid, signal.SIGKILL)
            wait_gone(state.pid, mark, _KILL_SECONDS)
            raise ConnectError(
                f"The embedded broker was not ready after {config.start_timeout:g} s and was killed; "
                f"start_timeout gives it longer. {_where_to_look(folder)}"
            )
        time.sleep(_POLL_SECONDS)
    return True


def _launch(
    config: BrokerConfig, folder: BrokerFolder, last: BrokerState | None, environ: Mapping[str, str]
) -> BrokerState:
    home = sluice_home(environ).absolute()
    java = find_java(environ=environ)
    jars = read_lock(_JARS)
    class_path = os.pathsep.join(map(str, resolve_jars(jars, java=java, home=home, environ=environ)))
    ports = choose_ports(config.port, None if last is None else last.ports)
    properties = server_properties(ports, folder.data, config.properties)
    folder.properties.write_text(render_properties(properties), encoding="ascii")
    format_storage(folder.data)
    folder.rotate_log()
    archive = class_archive(home / "archives", java, (*_JVM_FLAGS, class_path))
    command = [
        *(str(java.executable), f"-Xmx{config.heap}", *_JVM_FLAGS, *archive.flags),
        *(broker_mark(folder.data), f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"),
        *("-cp", class_path, "kafka.Kafka", str(folder.properties)),
    ]
    pid = launch_daemon(command, log=folder.log, environ={"MALLOC_ARENA_MAX": "2", **environ})
    version = next(jar.version for jar in jars if jar.artifact == "kafka-clients")
    state = BrokerState(pid, ports, version, properties=dict(config.properties))
    if archive.partial is not None:
        state = replace(state, archive=str(archive.path), partial_archive=str(archive.partial))
    folder.write_state(state)
    return state


def _clear_the_way(folder: BrokerFolder, last: BrokerState | None) -> None:
    """Wait until a broker killed just now has let go of its port, and end one that nothing tells of."""
    mark = broker_mark(folder.data)
    if last is not None:
        wait_gone(last.pid, mark, _KILL_SECONDS)
    while (pid := find_broker(mark)) is not None:
        signal_broker(pid, signal.SIGKILL)
        if not wait_gone(pid, mark, _KILL_SECONDS):
            raise ConnectError(f"Process {pid} serves {folder.data} and cannot be killed; end it, then try again.")


def _lost_its_port(folder: BrokerFolder) -> bool:
    return "Address already in use" in tail(folder.log, lines=200)


def _where_to_look(folder: BrokerFolder) -> str:
    return (
        f"If its data are damaged, remove {folder.data} to begin anew. The end of its log, {folder.log}:\n"
        f"{tail(folder.log)}"
    )
