"""A worker put together: stores, herder, supervisor and REST server, from its configuration."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException

from connect.config import read_properties, resolve_references
from connect.errors import ConnectError
from connect.plugins import PluginRegistry
from rest.app import create_admin_app, create_app
from rest.headers import AnswerHeaders
from rest.server import RestServer
from worker.config import StandaloneConfig
from worker.connector_files import read_connector
from worker.herder.connectors import TopicTracking
from worker.herder.herder import Herder
from worker.herder.units import Outcome
from worker.kafka.client_kind import ClientKind
from worker.kafka.clients import admin, internal_properties
from worker.membership.solo import SoloMembership
from worker.progress import ProgressLog
from worker.runtime.child import main as child_main
from worker.runtime.log import Redaction
from worker.runtime.providers import providers_of
from worker.stores.config import MemoryConfigStore
from worker.stores.file_offset import FileOffsetStore
from worker.stores.offset_service import OffsetService
from worker.stores.status import MemoryStatusStore
from worker.supervisor.process import ForkServerLauncher
from worker.supervisor.supervisor import Supervisor

__all__ = ["COULD_NOT_START", "DIED", "FAILED", "OK", "run_standalone"]

logger = logging.getLogger(__name__)

OK: Final = 0
DIED: Final = 1
COULD_NOT_START: Final = 2
FAILED: Final = 3
_CLUSTER_TIMEOUT: Final = 30.0
_REQUEST_TIMEOUT: Final = 90.0


def run_standalone(worker_file: Path, connector_files: Sequence[Path]) -> int:
    """Run connectors in this process's children until all are drained or a signal comes; the exit status.

    0: stopped by a signal, or every connector was drained. 1: the worker had a defect. 2: the worker could not start.
    3: a connector could not be created, or failed before it was drained.
    """
    stop = _stop_on_signals()
    try:
        props = read_properties(worker_file)
        resolved = _resolved(props)
        config = StandaloneConfig.parse(resolved)
        cluster_id = _cluster_id(resolved)
        store = FileOffsetStore(config.offset_file)
        server = RestServer(config.listeners)
        admin_server = RestServer(config.admin_listeners) if config.admin_listeners else None
    except ConnectError as error:
        logger.error("The worker could not start: %s", error)  # noqa: TRY400 - the text says all there is to know
        return COULD_NOT_START
    with _herder(config, props, store, server, admin_server) as herder:
        _serve(herder, cluster_id, config, server, admin_server)
        logger.info("The worker is up; its REST API is at http://%s:%d/", server.host, server.port)
        return _run(herder, connector_files, stop)


def _serve(
    herder: Herder, cluster_id: str, config: StandaloneConfig, server: RestServer, admin_server: RestServer | None
) -> None:
    headers = AnswerHeaders.of(
        config.access_control_allow_origin, config.access_control_allow_methods, config.response_http_headers_config
    )
    server.answer_with(create_app(herder, cluster_id, with_admin=config.admin_listeners is None, headers=headers))
    if admin_server is not None:
        admin_server.answer_with(create_admin_app(herder))


def _run(herder: Herder, files: Sequence[Path], stop: Future[int]) -> int:
    for file in files:
        try:
            name, config = read_connector(file)
            herder.create_connector(name, config).result(_REQUEST_TIMEOUT)
        except (ConnectError, TimeoutError) as error:
            logger.error("Failed to create connector for %s: %s", file, error)  # noqa: TRY400
            logger.error("Stopping after connector error")  # noqa: TRY400
            return FAILED
        logger.info("Created connector %s", name)
    herder.all_created()
    if files:
        # A worker without files waits for what comes over REST, and does not end with it.
        herder.drained.add_done_callback(lambda done: None if stop.done() else stop.set_result(_status(done)))
    return stop.result()


def _status(done: Future[Outcome]) -> int:
    if done.exception() is not None:
        return DIED
    outcome = done.result()
    if outcome.failed:
        logger.error("Finished, but these connectors failed: %s", ", ".join(outcome.failed))
        return FAILED
    logger.info("All connectors are drained")
    return OK


@contextmanager
def _herder(
    config: StandaloneConfig,
    props: Mapping[str, str],
    store: FileOffsetStore,
    server: RestServer,
    admin_server: RestServer | None,
) -> Iterator[Herder]:
    offsets = OffsetService(store)
    launcher = ForkServerLauncher(child_main)
    graceful = config.task_shutdown_graceful_timeout_ms / 1000
    host, port = config.rest_advertised_host_name or server.host, config.rest_advertised_port or server.port
    herder = Herder(
        props,
        f"{host}:{port}",
        MemoryConfigStore(),
        MemoryStatusStore(),
        SoloMembership(),
        lambda notify: Supervisor(launcher, notify, offsets.submit, graceful),
        PluginRegistry.discover(config.plugin_path or ()),
        offsets,
        TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset),
    )
    progress = ProgressLog(herder.totals)
    offsets.start()
    herder.start()
    progress.start()
    try:
        yield herder
    finally:
        server.close()
        if admin_server is not None:
            admin_server.close()
        progress.close()
        herder.close()
        offsets.close()


def _stop_on_signals() -> Future[int]:
    """The exit status, once there is a reason to end; SIGINT and SIGTERM are one, and end in good order."""
    stop: Future[int] = Future()

    def ask(number: int, _frame: object) -> None:
        if not stop.done():
            logger.info("Stopping on %s", signal.Signals(number).name)
            stop.set_result(OK)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)
    return stop


def _resolved(props: Mapping[str, str]) -> dict[str, str]:
    values = resolve_references(props, providers_of(props, Redaction())).values
    return {key: value for key, value in values.items() if value is not None}


def _cluster_id(props: Mapping[str, str]) -> str:
    """The id of the Kafka cluster, which must be there for a worker to start."""
    client = admin(internal_properties(props, ClientKind.ADMIN, "shared-admin"))
    try:
        return str(client.list_topics(timeout=_CLUSTER_TIMEOUT).cluster_id)
    except KafkaException as error:
        raise ConnectError(
            "Failed to connect to and describe Kafka cluster. Check that a broker answers at "
            f"bootstrap.servers={props['bootstrap.servers']} and that the security settings are right: {error}"
        ) from error
