"""Starts an embedded schema registry from Java, application, ports and settings."""

from __future__ import annotations

import http.client
import logging
from collections.abc import Mapping

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.java import find_java
from worker.embedded.ports import HOST, any_port, choose_port
from worker.embedded.process import JVM_FLAGS, launch_daemon, server_mark, tail
from worker.embedded.registry.application import application_jar, registry_archive
from worker.embedded.registry.settings import RegistryFolder, RegistryServerConfig, RegistryState, system_properties
from worker.embedded.server import clear_the_way, wait_ready, where_to_look

__all__ = ["API_PATH", "DEFAULT_PORT", "LEAST_JAVA", "becomes_ready", "launch_registry"]

logger = logging.getLogger(__name__)

API_PATH = "/apis/ccompat/v7"
"""The path at which the registry serves Confluent's API."""
DEFAULT_PORT = 8081
LEAST_JAVA = 21

_PORT_TRIES = 3
_PROBE_SECONDS = 2.0


def launch_registry(
    config: RegistryServerConfig, folder: RegistryFolder, last: RegistryState | None, environ: Mapping[str, str]
) -> RegistryState:
    """Start the registry of ``folder``, whose lock the caller holds, and wait until it is ready."""
    clear_the_way(server_mark("registry", folder.data), last, folder.data)
    for _ in range(_PORT_TRIES):
        state = _launch(config, folder, last, environ)
        if becomes_ready(state, folder, config):
            return state
        if config.port or "already bound" not in tail(folder.log, lines=200):
            break
        last = None
    raise ConnectError(f"The embedded registry ended while it started. {where_to_look(folder.log, folder.data)}")


def becomes_ready(state: RegistryState, folder: RegistryFolder, config: RegistryServerConfig) -> bool:
    """Wait until the registry is ready; return false if its process has ended."""
    return wait_ready(
        state.pid,
        server_mark("registry", folder.data),
        lambda: _answers(state.port),
        timeout=config.start_timeout,
        kind="registry",
        log=folder.log,
        data=folder.data,
    )


def _launch(
    config: RegistryServerConfig, folder: RegistryFolder, last: RegistryState | None, environ: Mapping[str, str]
) -> RegistryState:
    java = find_java(LEAST_JAVA, environ=environ)
    application = application_jar(sluice_home(environ).absolute(), environ)
    port = choose_port(config.port, None if last is None else last.port, DEFAULT_PORT)
    folder.data.mkdir(parents=True, exist_ok=True)
    folder.rotate_log()
    command = [
        *(str(java.executable), f"-Xmx{config.heap}", *JVM_FLAGS, server_mark("registry", folder.data)),
        *system_properties(config, port, any_port(taken=port), folder.data),
        *("-jar", str(application)),
    ]
    logger.info("Starting Apicurio Registry %s on port %d.", registry_archive().version, port)
    pid = launch_daemon(command, log=folder.log, environ={"MALLOC_ARENA_MAX": "2", **environ})
    state = RegistryState(pid, port, registry_archive().version, config.storage)
    folder.write_state(state)
    return state


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", f"{API_PATH}/subjects")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
