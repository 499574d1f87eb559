"""A standalone worker: it runs connectors from properties files, with offsets in a file and the rest in memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from connect.errors import ConnectError
from rest.app import REQUEST_TIMEOUT
from worker.app.broker_watch import BrokerWatch, look_at_brokers
from worker.app.brokers import cluster_id_of
from worker.app.servers import RestServers
from worker.app.stop_signals import StopSignals
from worker.app.worker import (
    COULD_NOT_START,
    FAILED,
    OK,
    WorkerProperties,
    end_with,
    log_end,
    log_start,
    parsed,
    plugins_of,
    start_herder,
    supervisor_of,
    topic_tracking_of,
    warn_of_unknown_keys,
)
from worker.cli.mistakes import refusal_text
from worker.config.connector_files import read_connector
from worker.config.worker import StandaloneConfig
from worker.errors import InvalidConnectorError
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.recent_log import RecentLog
from worker.runtime.entry import main as child_main
from worker.stores.config.store import MemoryConfigStore
from worker.stores.offset.file import FileOffsetStore
from worker.stores.offset.service import OffsetService
from worker.stores.status.store import MemoryStatusStore
from worker.stores.versions.file import FileVersionStore
from worker.stores.versions.service import VersionService
from worker.supervisor.plugin_homes import PluginHomes
from worker.supervisor.process import ForkServerLauncher

__all__ = ["run_standalone"]

logger = logging.getLogger(__name__)


def run_standalone(worker_file: Path, connector_files: Sequence[Path], recent: RecentLog) -> int:
    """Run connectors until all are drained or a signal arrives; return the exit status.

    0: stopped by a signal, or every connector was drained. 1: the worker failed because of a bug. 2: the worker could
    not start. 3: a connector could not be created, or failed before it was drained.
    """
    return log_end(_run_worker(worker_file, connector_files, recent))


def _run_worker(worker_file: Path, connector_files: Sequence[Path], recent: RecentLog) -> int:
    with StopSignals(OK) as stop, ExitStack() as stack:
        try:
            props = WorkerProperties.read(worker_file)
            config = parsed(StandaloneConfig, props)
            log_start(f"a standalone worker with {_listed(connector_files)}", props, config)
            warn_of_unknown_keys(config)
            cluster_id = cluster_id_of(props.resolved)
            store = FileOffsetStore(config.offset_file)
            stack.callback(store.close)
            servers = RestServers(config, props.resolved, props.redaction, stack)
            watch = BrokerWatch(look_at_brokers(props.resolved))
            stack.callback(watch.close)
            herder = _standalone_herder(config, props, store, servers, watch, stack)
            watch.start()
        except ConnectError as error:
            logger.error("The worker could not start: %s", error)  # noqa: TRY400 - the text says all there is to know
            return COULD_NOT_START
        stack.callback(servers.close)
        servers.serve(herder, cluster_id, None, recent)
        return _run(herder, connector_files, stop)
    return OK


def _standalone_herder(
    config: StandaloneConfig,
    props: WorkerProperties,
    store: FileOffsetStore,
    servers: RestServers,
    watch: BrokerWatch,
    stack: ExitStack,
) -> Herder:
    offsets = OffsetService(store)
    plugins = plugins_of(config)
    launcher = ForkServerLauncher(child_main, homes=PluginHomes(plugins))
    herder = Herder(
        WorkerSettings(props.written, servers.address.worker_id, topic_tracking_of(config)),
        Stores(
            MemoryConfigStore(),
            MemoryStatusStore(),
            offsets,
            VersionService(FileVersionStore(config.history_file)),
        ),
        Inbox(),
        SoloMembership(),
        supervisor_of(config, launcher, offsets),
        plugins,
        watch.troubles,
    )
    start_herder(herder, offsets, config, stack)
    return herder


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files) or "connectors to come over REST"


def _run(herder: Herder, files: Sequence[Path], stop: StopSignals) -> int:
    for file in files:
        try:
            given = read_connector(file)
            herder.connectors.create(given.name, given.config, given.target).result(REQUEST_TIMEOUT)
        except (ConnectError, TimeoutError) as error:
            logger.error("Failed to create connector for %s: %s", file, _why(error))  # noqa: TRY400
            logger.error("Stopping after connector error")  # noqa: TRY400
            return FAILED
        logger.info("Created connector %s", given.name)
    stop.started()
    herder.all_created()
    if files:
        # A worker without files waits for connectors over REST, and does not end with them.
        end_with(herder, stop.status)
    return stop.status.result()


def _why(error: Exception) -> str:
    """Return why a connector was not created; of a configuration, its mistakes with their remedies."""
    if isinstance(error, InvalidConnectorError):
        return refusal_text(None, error.infos, error.warnings)
    return str(error)
