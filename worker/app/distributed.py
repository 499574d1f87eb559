"""A distributed worker: stores in Kafka topics, group membership, and REST servers that forward to other workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connect.errors import ConfigError, ConnectError
from rest.app import REQUEST_TIMEOUT
from rest.peers.forwarding import MOST_FORWARDS, Forwarding
from rest.peers.identities import Identities
from worker.app.brokers import cluster_id_of
from worker.app.servers import RestServers
from worker.app.stop_signals import StopSignals
from worker.app.worker import (
    COULD_NOT_START,
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
from worker.config.worker import WORKER_ID, DistributedConfig
from worker.herder.cluster.leadership import KeyRotation
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import ClusterSettings, Stores, WorkerSettings
from worker.kafka.topics.compacted_clients import WriteLimit
from worker.membership.group import GroupMember
from worker.membership.membership import GroupMembership
from worker.peers.client import PeerClient
from worker.peers.leader import LeaderClient
from worker.peers.owner import OwnerClient
from worker.processes.lease import Lease
from worker.recent_log import RecentLog
from worker.runtime.entry import main as child_main
from worker.stores.config.kafka import KafkaConfigStore
from worker.stores.offset.kafka import KafkaOffsetStore
from worker.stores.offset.service import OffsetService
from worker.stores.status.kafka import KafkaStatusStore
from worker.stores.versions.kafka import KafkaVersionStore
from worker.stores.versions.service import VersionService
from worker.supervisor.plugin_homes import PluginHomes
from worker.supervisor.process import ForkServerLauncher

__all__ = ["Setting", "run_distributed", "run_in_setting"]

logger = logging.getLogger(__name__)
_OWNER_TIMEOUT_SECONDS: Final = 1.0
_WRITING: Final = 0.5
"""Part of the session within which a write is delivered or never; with signs of life the lease lasts longer."""


def _nothing(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The differences of a worker that is part of something larger, such as the flows of a mirror.

    ``kind`` is the kind of worker that the log reports. ``path`` is where a relay serves its REST API; unless that is
    ``public``, only other workers may use it. ``prepare`` is called before the start with the herder and the stop
    signals, whose exit status it may set. ``up`` is called with the URL at which this machine reaches the worker once
    it answers.
    """

    kind: str = ""
    path: str = ""
    public: bool = True
    prepare: Callable[[Herder, Future[int]], None] = _nothing
    up: Callable[[str], None] = _nothing


def run_distributed(worker_file: Path | None, environment: Mapping[str, str], recent: RecentLog) -> int:
    """Run a distributed worker until a signal stops it; return the exit status.

    Properties from the ``environment`` go before those of the file.

    0: stopped by a signal. 1: the worker failed because of a bug, or its cluster refused it. 2: the worker could not
    start.
    """
    return run_in_setting(lambda: WorkerProperties.read(worker_file, environment), recent, Setting())


def run_in_setting(read: Callable[[], WorkerProperties], recent: RecentLog, setting: Setting) -> int:
    """Run a worker with the properties that ``read`` returns; the exit status is that of :func:`run_distributed`."""
    return log_end(_run_worker(read, recent, setting))


def _run_worker(read: Callable[[], WorkerProperties], recent: RecentLog, setting: Setting) -> int:
    with StopSignals(OK) as stop, ExitStack() as stack:
        try:
            props = read()
            config = parsed(DistributedConfig, props)
            log_start(setting.kind or f"a worker of the cluster {config.group_id}", props, config)
            warn_of_unknown_keys(config)
            servers = RestServers(config, props.resolved, props.redaction, stack, setting.path)
            _check_signs(config, servers)
            cluster_id = cluster_id_of(props.resolved)
            peers = PeerClient(servers.peer_context(), REQUEST_TIMEOUT, MOST_FORWARDS)
            stack.callback(peers.close)
            herder = _distributed_herder(config, props, servers, peers, stack)
            setting.prepare(herder, stop.status)
        except ConnectError as error:
            logger.error("The worker could not start: %s", error)  # noqa: TRY400 - the text says all there is to know
            return COULD_NOT_START
        stop.started()
        stack.callback(servers.close)
        identities = Identities(herder.peers, config.inter_worker_signature_algorithm, servers.address.worker_id)
        forwarding = Forwarding(peers, identities, names_callers=servers.names_callers)
        if setting.public:
            servers.serve(herder, cluster_id, forwarding, recent, identities)
        else:
            servers.serve_workers(herder, forwarding)
        setting.up(servers.own_url)
        end_with(herder, stop.status)
        return stop.status.result()
    return OK


def _check_signs(config: DistributedConfig, servers: RestServers) -> None:
    """Refuse sign-in without signed requests between workers, which carry the caller's name."""
    if servers.names_callers and config.connect_protocol.lower() != "sessioned":
        raise ConfigError(
            "connect.protocol",
            config.connect_protocol,
            "If users sign in or requests are audited, workers must sign the requests they forward: set it to "
            "sessioned",
        )


def _distributed_herder(
    config: DistributedConfig,
    props: WorkerProperties,
    servers: RestServers,
    peers: PeerClient,
    stack: ExitStack,
) -> Herder:
    inbox, lease = Inbox(), Lease()
    limit = WriteLimit(config.session_timeout_ms / 1000 * _WRITING, lease.lasts, lease.lapses)
    store = KafkaOffsetStore(config, props.resolved, limit)
    stack.callback(store.close)
    store.start()
    offsets = OffsetService(store)
    plugins = plugins_of(config)
    launcher = ForkServerLauncher(child_main, lease.path, homes=PluginHomes(plugins))
    worker_id, algorithm = servers.address.worker_id, config.inter_worker_signature_algorithm
    configs = KafkaConfigStore(config, props.resolved, inbox.post, limit)
    leader = LeaderClient(peers, algorithm, worker_id)
    stack.callback(leader.close)
    owner_peers = PeerClient(servers.peer_context(), _OWNER_TIMEOUT_SECONDS, MOST_FORWARDS)
    stack.callback(owner_peers.close)
    owners = OwnerClient(owner_peers, configs.session_key, algorithm, worker_id)
    stack.callback(owners.close)
    cluster = _cluster_settings(config, leader, owners, lease)
    herder = Herder(
        WorkerSettings({**props.written, WORKER_ID: worker_id}, worker_id, topic_tracking_of(config), cluster),
        Stores(
            configs,
            KafkaStatusStore(worker_id, config, props.resolved, inbox.post),
            offsets,
            VersionService(KafkaVersionStore(config, props.resolved)),
            lambda: store.refusal,
        ),
        inbox,
        _membership(config, props.resolved, servers.address.url, lease),
        supervisor_of(config, launcher, offsets),
        plugins,
    )
    start_herder(herder, offsets, config, stack)
    return herder


def _membership(config: DistributedConfig, resolved: Mapping[str, str], url: str, lease: Lease) -> GroupMembership:
    """Return the worker's group membership; its session is the lease of the child processes."""
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
