"""The REST API with guards, over a real herder whose children are threads."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry
from equipment.stores.versions import MemoryVersionStore
from rest.access.access import Access
from rest.access.guards import AllowedHosts, Guards
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from worker.herder.herder import Herder
from worker.herder.inbox import Inbox
from worker.herder.settings import Stores, WorkerSettings
from worker.membership.membership import SoloMembership
from worker.messages import messages
from worker.messages.messages import OffsetPairs, decode, encode
from worker.security.permissions import Roles
from worker.security.watched_file import WatchedFile
from worker.stores.config.store import MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore
from worker.stores.versions.service import VersionService
from worker.supervisor.process import ThreadLauncher
from worker.supervisor.supervisor import Supervisor

__all__ = ["OTHER_PLUGIN", "PLUGIN", "basic", "guards_of", "small_herder"]

PLUGIN = "shop.OrdersSource"
OTHER_PLUGIN = "bank.PayrollSink"


class _NoOffsets:
    """A store without source offsets."""

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        found: Future[OffsetPairs] = Future()
        found.set_result([])
        return found

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        done: Future[None] = Future()
        done.set_result(None)
        return done


def _child(connection: Connection) -> None:
    """Accepts every configuration, and declares one password for connectors."""
    first = decode(connection.recv_bytes())
    if isinstance(first, messages.ValidateConfig):
        connection.send_bytes(encode(messages.Validated({"configs": []}, _kind(first.config))))
    elif isinstance(first, messages.DescribePlugin):
        keys: list[dict[str, Any]] = [{"name": "pin", "type": "PASSWORD"}, {"name": "token.count", "type": "INT"}]
        connection.send_bytes(encode(messages.PluginDescribed(keys)))
    elif isinstance(first, messages.RepairDeadLetter):
        changed = [{"key": "value", "before": "bad", "after": "good"}]
        connection.send_bytes(encode(messages.DeadLetterRepaired("q", True, "t", changed, {}, None)))
    else:
        try:
            connection.recv_bytes()
        except (EOFError, OSError):
            return


def _kind(config: Mapping[str, str | None]) -> str:
    return "sink" if config.get("connector.class") == OTHER_PLUGIN else "source"


@contextmanager
def small_herder() -> Iterator[Herder]:
    """A herder that knows two plugins and starts no process."""
    entries = [
        PluginEntry(PluginKind.CONNECTOR, PLUGIN, "source", aliases=("com.shop.OrdersConnector",)),
        PluginEntry(PluginKind.CONNECTOR, OTHER_PLUGIN, "sink"),
    ]
    herder = Herder(
        WorkerSettings({}, "host:8083"),
        Stores(MemoryConfigStore(), MemoryStatusStore(), _NoOffsets(), VersionService(MemoryVersionStore())),
        Inbox(),
        SoloMembership(),
        lambda notify: Supervisor(ThreadLauncher(_child), notify, lambda *_: None, 5.0),
        PluginRegistry(entries),
    )
    herder.start()
    try:
        yield herder
    finally:
        herder.close()


def guards_of(
    herder: Herder,
    sign_in: SignIn,
    roles: WatchedFile[Roles] | None = None,
    *,
    health_open: bool = False,
    hosts: AllowedHosts | None = None,
    configs: Callable[[Herder], StoredConfigs] = StoredConfigs,
) -> Guards:
    """The guards, created as a worker does."""
    return Guards(hosts, access=Access(sign_in, roles, configs(herder), health_open=health_open))


def basic(user: str, password: str) -> dict[str, str]:
    """The header with which a user signs in."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}
