"""A worker put together: stores, herder, supervisor and REST server, from its configuration."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from ssl import SSLContext
from typing import Final, TypeVar

from confluent_kafka import KafkaException

from connect.config import read_properties
from connect.errors import ConfigError, ConnectError, PluginError, RetriableError
from connect.plugins import PluginKind, PluginRegistry
from rest.app import create_admin_app, create_app
from rest.http.headers import AnswerHeaders
from rest.peers.forwarding import Forwarding, Peers
from rest.peers.leader import LeaderClient
from rest.peers.owner import OwnerClient
from rest.server.server import RestServer
from rest.server.tls import TlsSettings
from worker.app.stop_signals import StoppedError, StopSignals
from worker.config.child_providers import worker_values
from worker.config.connector_files import read_connector
from worker.config.own_files import WORKER_FILE
from worker.config.unknown_keys import suggest_known_keys
from worker.config.worker import DistributedConfig, StandaloneConfig, WorkerConfig
from worker.herder.cluster.leadership import KeyRotation
from worker.herder.connectors.connectors import TopicTracking
from worker.herder.connectors.drains import Outcome
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.parts import ClusterSettings
from worker.kafka.clients.librdkafka import admin, until_answered
from worker.kafka.clients.roles import internal_properties
from worker.kafka.settings.keys import CLIENT_KEYS
from worker.kafka.settings.kind import ClientKind
from worker.kafka.topics.compacted_clients import WriteLimit
from worker.log import hide_in_log
from worker.membership.group import GroupMember
from worker.membership.membership import GroupMembership, SoloMembership
from worker.metrics.progress import ProgressLog
from worker.runtime.entry import main as child_main
from worker.security.redaction import Redaction
from worker.stores.config.kafka import KafkaConfigStore
from worker.stores.config.store import MemoryConfigStore
from worker.stores.offset.file import FileOffsetStore
from worker.stores.offset.kafka import KafkaOffsetStore
from worker.stores.offset.service import OffsetService
from worker.stores.status.kafka import KafkaStatusStore
from worker.stores.status.store import MemoryStatusStore
from worker.supervisor.lease import Lease
from worker.supervisor.process import ForkServerLauncher
from worker.supervisor.supervisor import Supervisor

__all__ = ["COULD_NOT_START", "DIED", "FAILED", "OK", "run_distributed", "run_standalone"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

OK: Final = 0
DIED: Final = 1
COULD_NOT_START: Final = 2
FAILED: Final = 3
_ADMIN_LISTENERS: Final = "admin.listeners"
_CLUSTER_TIMEOUT: Final = 30.0
_REQUEST_TIMEOUT: Final = 90.0
_OWNER_TIMEOUT: Final = 1.0
_WRITING: Final = 0.5
"""Part of the session within which a write is delivered or never; with signs of life the lease lasts longer."""


def run_standalone(worker_file: Path, connector_files: Sequence[Path]) -> int:
    """Run connectors in this process's children until all are drained or a signal comes; the exit status.

    0: stopped by a signal, or every connector was drained. 1: the worker had a defect. 2: the worker could not start.
    3: a connector could not be created, or failed before it was drained.
    """
    stop = StopSignals(OK)
    with suppress(StoppedError), ExitStack() as stack:
        try:
            props = {**read_properties(worker_file), WORKER_FILE: str(worker_file.resolve())}
            redaction = Redaction()
            hide_in_log(redaction)
            resolved = worker_values(props, redaction)
            config = StandaloneConfig.parse(resolved)
            _warn(config)
            cluster_id = _cluster_id(resolved)
            store = FileOffsetStore(config.offset_file)
            stack.callback(store.close)
            web = _Web(config, resolved, redaction, stack)
            herder = _standalone_herder(config, props, store, web, stack)
        except ConnectError as error:
            logger.error("The worker could not start: %s", error)  # noqa: TRY400 - the text says all there is to know
            return COULD_NOT_START
        stack.callback(web.close)
        web.serve(herder, cluster_id, None)
        return _run(herder, connector_files, stop)
    return OK


def run_distributed(worker_file: Path) -> int:
    """Be a worker of a cluster until a signal comes; the exit status.

    0: stopped by a signal. 1: the worker had a defect, or its cluster refuses it. 2: the worker could not start.
    """
    stop = StopSignals(OK)
    with suppress(StoppedError), ExitStack() as stack:
        try:
            props = {**read_properties(worker_file), WORKER_FILE: str(worker_file.resolve())}
            redaction = Redaction()
            hide_in_log(redaction)
            resolved = worker_values(props, redaction)
            config = DistributedConfig.parse(resolved)
            _warn(config)
            web = _Web(config, resolved, redaction, stack)
            cluster_id = _cluster_id(resolved)
            peers = Peers(web.peer_context(), _REQUEST_TIMEOUT)
            stack.callback(peers.close)
            herder = _distributed_herder(config, props, resolved, web, peers, stack)
        except ConnectError as error:
            logger.error("The worker could not start: %s", error)  # noqa: TRY400 - the text says all there is to know
            return COULD_NOT_START
        stop.started()
        stack.callback(web.close)
        web.serve(herder, cluster_id, Forwarding(peers))
        _end_with(herder, stop.status)
        return stop.status.result()
    return OK


class _Web:
    """The REST servers of a worker. They listen at once, so that an address that is taken is known first."""

    def __init__(
        self, config: WorkerConfig, resolved: Mapping[str, str], redaction: Redaction, stack: ExitStack
    ) -> None:
        self._config = config
        self._redaction = redaction
        self._tls = TlsSettings(resolved)
        self._admin: RestServer | None = None
        self._server = RestServer(config.listeners, self._tls)
        stack.callback(self.close)
        if config.admin_listeners:
            self._admin = RestServer(
                config.admin_listeners, TlsSettings(resolved, _ADMIN_LISTENERS), key=_ADMIN_LISTENERS
            )
        self.address = self._server.advertised(config)

    def serve(self, herder: Herder, cluster_id: str, forwarding: Forwarding | None) -> None:
        """Answer requests from now on."""
        config = self._config
        headers = AnswerHeaders.of(
            config.access_control_allow_origin, config.access_control_allow_methods, config.response_http_headers_config
        )
        with_admin = config.admin_listeners is None
        app = create_app(
            herder, cluster_id, with_admin=with_admin, headers=headers, forwarding=forwarding, hide=self._redaction.hide
        )
        self._server.answer_with(app)
        if self._admin is not None:
            self._admin.answer_with(
                create_admin_app(herder, distributed=forwarding is not None, hide=self._redaction.hide)
            )
        logger.info("The worker is up; its REST API is at %s", self.address.url)

    def peer_context(self) -> SSLContext | None:
        """How this worker trusts the others, if they listen as it does and that is by https."""
        return self._tls.client_context() if self.address.scheme == "https" else None

    def close(self) -> None:
        """Answer no more, if not done before: whoever asks a worker that ends is to hear so and not to wait."""
        for server in (self._server, self._admin):
            if server is not None:
                server.close()


def _standalone_herder(
    config: StandaloneConfig, props: Mapping[str, str], store: FileOffsetStore, web: _Web, stack: ExitStack
) -> Herder:
    offsets = OffsetService(store)
    launcher = ForkServerLauncher(child_main)
    herder = Herder(
        props,
        web.address.worker_id,
        Inbox(),
        MemoryConfigStore(),
        MemoryStatusStore(),
        SoloMembership(),
        lambda notify: Supervisor(launcher, notify, offsets.submit, config.task_shutdown_graceful_timeout_ms / 1000),
        _plugins(config),
        offsets,
        TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset),
    )
    _start(herder, offsets, stack)
    return herder


def _distributed_herder(
    config: DistributedConfig,
    props: Mapping[str, str],
    resolved: Mapping[str, str],
    web: _Web,
    peers: Peers,
    stack: ExitStack,
) -> Herder:
    inbox, lease = Inbox(), Lease()
    limit = WriteLimit(config.session_timeout_ms / 1000 * _WRITING, lease.lasts)
    store = KafkaOffsetStore(config, resolved, limit)
    stack.callback(store.close)
    store.start()
    offsets = OffsetService(store)
    launcher = ForkServerLauncher(child_main, lease.path)
    leader = LeaderClient(peers, config.inter_worker_signature_algorithm)
    stack.callback(leader.close)
    owner_peers = Peers(web.peer_context(), _OWNER_TIMEOUT)
    stack.callback(owner_peers.close)
    owners = OwnerClient(owner_peers)
    stack.callback(owners.close)
    herder = Herder(
        props,
        web.address.worker_id,
        inbox,
        KafkaConfigStore(config, resolved, inbox.post, limit),
        KafkaStatusStore(web.address.worker_id, config, resolved, inbox.post),
        _membership(config, resolved, web.address.url, lease),
        lambda notify: Supervisor(launcher, notify, offsets.submit, config.task_shutdown_graceful_timeout_ms / 1000),
        _plugins(config),
        offsets,
        TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset),
        _cluster_settings(config, leader, owners, lease),
    )
    _start(herder, offsets, stack)
    return herder


def _plugins(config: WorkerConfig) -> PluginRegistry:
    """The plugins there are; :class:`~connect.errors.ConfigError` if the worker's converters are not among them."""
    registry = PluginRegistry.discover(config.plugin_path or (), config.plugin_import_allowlist)
    for key, kind, name in (
        ("key.converter", PluginKind.CONVERTER, config.key_converter),
        ("value.converter", PluginKind.CONVERTER, config.value_converter),
        ("header.converter", PluginKind.HEADER_CONVERTER, config.header_converter),
    ):
        try:
            registry.find(kind, name)
        except PluginError as error:
            raise ConfigError(key, name, str(error)) from error
    return registry


def _membership(config: DistributedConfig, resolved: Mapping[str, str], url: str, lease: Lease) -> GroupMembership:
    """The worker's place in its group, whose session is the lease of the worker's children."""
    return GroupMembership(url, lambda tell, snapshot: GroupMember(config, resolved, url, tell, snapshot, lease.renew))


def _cluster_settings(
    config: DistributedConfig, leader: LeaderClient, owners: OwnerClient, lease: Lease
) -> ClusterSettings:
    rotation = KeyRotation(
        config.inter_worker_key_generation_algorithm,
        config.inter_worker_key_size,
        max(1.0, config.inter_worker_key_ttl_ms / 1000),
    )
    return ClusterSettings(
        leader=leader,
        owners=owners,
        keys=rotation if config.connect_protocol.lower() == "sessioned" else None,
        verification_algorithms=config.inter_worker_verification_algorithms,
        lease=lease,
        sync_timeout=config.worker_sync_timeout_ms / 1000,
        unsync_backoff=config.worker_unsync_backoff_ms / 1000,
        exactly_once=config.exactly_once_source_support.lower() == "enabled",
    )


def _start(herder: Herder, offsets: OffsetService, stack: ExitStack) -> None:
    """Start the threads; they end in the order in which none needs one that has ended."""
    offsets.start()
    stack.callback(offsets.close)
    stack.callback(herder.close)
    herder.start()
    progress = ProgressLog(herder.totals)
    progress.start()
    stack.callback(progress.close)


def _run(herder: Herder, files: Sequence[Path], stop: StopSignals) -> int:
    for file in files:
        try:
            given = read_connector(file)
            herder.create_connector(given.name, given.config, given.target).result(_REQUEST_TIMEOUT)
        except (ConnectError, TimeoutError) as error:
            logger.error("Failed to create connector for %s: %s", file, error)  # noqa: TRY400
            logger.error("Stopping after connector error")  # noqa: TRY400
            return FAILED
        logger.info("Created connector %s", given.name)
    stop.started()
    herder.all_created()
    if files:
        # A worker without files waits for what comes over REST, and does not end with it.
        _end_with(herder, stop.status)
    return stop.status.result()


def _end_with(herder: Herder, stop: Future[int]) -> None:
    """Have the worker end when its herder has."""
    herder.drained.add_done_callback(lambda done: None if stop.done() else stop.set_result(_status(done)))


def _status(done: Future[Outcome]) -> int:
    if (error := done.exception()) is not None:
        logger.error("The worker ends: %s", error)
        return DIED
    outcome = done.result()
    if outcome.failed:
        logger.error("Finished, but these connectors failed: %s", ", ".join(outcome.failed))
        return FAILED
    logger.info("All connectors are drained")
    return OK


def _warn(config: WorkerConfig) -> None:
    """Tell of keys that have no effect because they are written wrong."""
    own = {key.name for key in type(config).definitions()}
    for warning in suggest_known_keys(config.originals, own.union(*CLIENT_KEYS.values())):
        logger.warning("%s", warning)


def _cluster_id(props: Mapping[str, str]) -> str:
    """The id of the Kafka cluster, which must be there for a worker to start."""
    client = admin(internal_properties(props, ClientKind.ADMIN, "shared-admin"))

    def ask() -> str:
        try:
            return str(client.list_topics(timeout=_CLUSTER_TIMEOUT).cluster_id)
        except KafkaException as error:
            raise RetriableError(
                "Failed to connect to and describe Kafka cluster. Check that a broker answers at "
                f"bootstrap.servers={props['bootstrap.servers']} and that the security settings are right: {error}"
            ) from error

    return until_answered(lambda: _interruptible(ask), _CLUSTER_TIMEOUT)


def _interruptible(ask: Callable[[], T]) -> T:
    """What this gives, which may wait for the brokers in the client library, where no signal would end it."""
    answer: Future[T] = Future()

    def attempt() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=attempt, name="cluster-id", daemon=True).start()
    return answer.result()
