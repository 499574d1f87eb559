"""Starts an embedded broker from Java, jars, storage, ports and properties."""

from __future__ import annotations

import logging
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from worker.embedded.broker.archive import class_archive
from worker.embedded.broker.folder import BrokerFolder, BrokerState, format_storage
from worker.embedded.broker.settings import BrokerConfig, Ports, is_plaintext, render_properties, server_properties
from worker.embedded.ports import HOST, any_port, choose_port, is_free
from worker.embedded.process import JVM_FLAGS, launch_daemon, server_mark, tail
from worker.embedded.server import clear_the_way, wait_ready, where_to_look

__all__ = ["DEFAULT_PORT", "becomes_ready", "choose_ports", "is_ready", "launch_broker"]

logger = logging.getLogger(__name__)

DEFAULT_PORT = 9092

_JARS = Path(__file__).with_name("broker.jars")
_LOGGING = Path(__file__).with_name("log4j2.properties")
_PORT_TRIES = 3
_PROBE_SECONDS = 1.0
_METADATA, _VERSION, _CORRELATION = 3, 4, 1
_LARGEST_ANSWER = 1 << 20


def launch_broker(
    config: BrokerConfig, folder: BrokerFolder, last: BrokerState | None, environ: Mapping[str, str]
) -> BrokerState:
    """Start the broker of ``folder``, whose lock the caller holds, and wait until it is ready."""
    clear_the_way(server_mark("broker", folder.data), last, folder.data)
    if last is not None and last.partial_archive:
        Path(last.partial_archive).unlink(missing_ok=True)
    for _ in range(_PORT_TRIES):
        state = _launch(config, folder, last, environ)
        if becomes_ready(state, folder, config):
            return state
        if config.port or not _lost_its_port(folder):
            break
        last = None
    raise ConnectError(f"The embedded broker ended while it started. {where_to_look(folder.log, folder.data)}")


def becomes_ready(state: BrokerState, folder: BrokerFolder, config: BrokerConfig) -> bool:
    """Wait until the broker is ready; return false if its process has ended.

    If it does neither in time, it is killed, and the ``ConnectError`` has the end of its log.
    """
    plaintext = is_plaintext(state.properties)
    return wait_ready(
        state.pid,
        server_mark("broker", folder.data),
        lambda: is_ready(state.ports.broker, plaintext=plaintext),
        timeout=config.start_timeout,
        kind="broker",
        log=folder.log,
        data=folder.data,
    )


def choose_ports(wanted: int | None, last: Ports | None) -> Ports:
    """Choose two free ports: for clients as in :func:`~worker.embedded.ports.choose_port`, and for the controller."""
    broker = choose_port(wanted, None if last is None else last.broker, DEFAULT_PORT)
    if last is not None and last.controller != broker and is_free(last.controller):
        return Ports(broker, last.controller)
    return Ports(broker, any_port(taken=broker))


def is_ready(port: int, *, plaintext: bool = True) -> bool:
    """Return whether the broker on ``port`` lists itself as alive, or accepts connections if not ``plaintext``.

    This sends one hand-made Metadata request.
    """
    try:
        with socket.create_connection((HOST, port), _PROBE_SECONDS) as connection:
            return not plaintext or _count_brokers(connection) > 0
    except OSError:
        return False


def _launch(
    config: BrokerConfig, folder: BrokerFolder, last: BrokerState | None, environ: Mapping[str, str]
) -> BrokerState:
    home = sluice_home(environ).absolute()
    java = find_java(environ=environ)
    jars = read_lock(_JARS)
    class_path = os.pathsep.join(map(str, resolve_jars(jars, home=home, environ=environ)))
    ports = choose_ports(config.port, None if last is None else last.ports)
    properties = server_properties(ports, folder.data, config.properties)
    folder.properties.write_text(render_properties(properties), encoding="ascii")
    format_storage(folder.data)
    folder.rotate_log()
    archive = class_archive(home / "archives", java, (*JVM_FLAGS, class_path))
    command = [
        *(str(java.executable), f"-Xmx{config.heap}", *JVM_FLAGS, *archive.flags),
        *(server_mark("broker", folder.data), f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"),
        *("-cp", class_path, "kafka.Kafka", str(folder.properties)),
    ]
    version = next(jar.version for jar in jars if jar.artifact == "kafka-clients")
    logger.info("Starting Apache Kafka %s on port %d.", version, ports.broker)
    pid = launch_daemon(command, log=folder.log, environ={"MALLOC_ARENA_MAX": "2", **environ})
    state = BrokerState(pid, ports, version, properties=dict(config.properties))
    if archive.partial is not None:
        state = replace(state, archive=str(archive.path), partial_archive=str(archive.partial))
    folder.write_state(state)
    return state


def _lost_its_port(folder: BrokerFolder) -> bool:
    return "Address already in use" in tail(folder.log, lines=200)


def _count_brokers(connection: socket.socket) -> int:
    header = struct.pack(">hhih", _METADATA, _VERSION, _CORRELATION, -1)
    no_topics_and_create_none = struct.pack(">ib", 0, 0)
    request = header + no_topics_and_create_none
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    if not 12 <= size <= _LARGEST_ANSWER:
        raise ConnectionError(f"an answer of {size} bytes did not come from a Kafka broker")
    _correlation, _throttle, brokers = struct.unpack_from(">iii", _receive(connection, size))
    return int(brokers)


def _receive(connection: socket.socket, size: int) -> bytes:
    answer = bytearray()
    while len(answer) < size:
        part = connection.recv(size - len(answer))
        if not part:
            raise ConnectionError("the connection was closed")
        answer += part
    return bytes(answer)
