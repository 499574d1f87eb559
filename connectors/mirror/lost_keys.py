"""Finds the keys of MirrorMaker's file that have no effect, and says what to write in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS
from connectors.mirror.flows import CLIENTS, Flow, Flows, is_for_every_flow, is_for_every_worker, is_of_clients
from connectors.mirror.old_names import OLD_NAMES, meant_key, old_name_warnings

__all__ = ["lost_keys", "old_names_in"]

_CLUSTERS: Final = "clusters"
_CLASS: Final = "connector.class"
_DRIVER: Final = ("dedicated.mode.enable.internal.rest", "listeners", "rest.advertised.", "admin.listeners")
_OF_CLIENTS: Final = tuple(f"{client}." for client in CLIENTS)
_OLD: Final = frozenset(OLD_NAMES.values())


def lost_keys(
    props: Mapping[str, str], flows: Flows, connector_keys: Collection[str], worker_keys: Collection[str]
) -> list[str]:
    """Return the keys of a file that have no effect, each with a remedy.

    ``worker_keys`` are the keys of a flow's worker.
    """
    remedies = _Remedies(props, flows, frozenset(connector_keys), frozenset(worker_keys))
    found = {key: remedies.of(key) for key in sorted(props)}
    return [f"{key} has no effect: {remedy}" for key, remedy in found.items() if remedy is not None]


def old_names_in(flows: Collection[Flow]) -> list[str]:
    """Return warnings about options that the connectors of these flows have under an old name, each once."""

    def found() -> Iterator[str]:
        for flow in flows:
            for config in flow.connectors.values():
                yield from old_name_warnings(config, OLD_NAMES)

    return list(dict.fromkeys(found()))


class _Remedies:
    """Says what to write in place of a key. A remedy names keys that have an effect where they are written."""

    def __init__(
        self, props: Mapping[str, str], flows: Flows, connectors: frozenset[str], worker: frozenset[str]
    ) -> None:
        self._props = props
        self._clusters = flows.clusters
        self._pairs = flows.pairs
        self._connectors = connectors
        self._worker = worker
        clients = frozenset[str]().union(*CLIENT_KEYS.values())
        self._of_cluster = {*worker, *clients, *filter(is_of_clients, connectors)}
        """The keys that may have the alias of a cluster as their prefix."""
        self._alone = {*connectors, *(key for key in worker if is_for_every_worker(key) or key.startswith(_DRIVER))}
        """The keys that may stand alone."""

    def of(self, key: str) -> str | None:
        """Return the remedy for a key; ``None`` if the key has an effect, or may have one."""
        for source, target in self._pairs:
            if key.startswith(prefix := f"{source}->{target}."):
                return self._in_flow(key.removeprefix(prefix), prefix, target)
        for alias in sorted(self._clusters, key=len, reverse=True):
            if key.startswith(f"{alias}."):
                return self._in_cluster(key.removeprefix(f"{alias}."), alias)
        return self._without_prefix(key)

    def _in_flow(self, key: str, prefix: str, target: str) -> str | None:
        if key in self._connectors or key in _OLD:
            return None
        if _CLASS in self._props or f"{prefix}{_CLASS}" in self._props:
            # Another connector in the place of MirrorMaker's, with keys of its own.
            return None
        if key in self._worker:
            return f"it is a key of workers, so write {target}.{key}"
        meant = meant_key(key, self._connectors)
        return None if meant is None else f"did you mean {prefix}{meant}?"

    def _in_cluster(self, key: str, alias: str) -> str | None:
        if key in self._of_cluster or key.startswith(_OF_CLIENTS):
            return None
        if key in self._connectors:
            return f"it is a key of connectors, so write {key}, or {self._flow_key(key)} for one flow"
        meant = meant_key(key, self._of_cluster | self._connectors)
        if meant is None:
            return None
        if meant in self._of_cluster:
            return f"did you mean {alias}.{meant}?"
        return f"did you mean {meant}, or {self._flow_key(meant)} for one flow?"

    def _without_prefix(self, key: str) -> str | None:
        if key == _CLUSTERS or key in self._alone or key in _OLD or is_of_clients(key):
            return None
        if key in self._worker:
            return f"it is a key of workers, which have the alias of their target: write {self._worker_key(key)}"
        if key.startswith(_OF_CLIENTS):
            return f"a client setting needs the alias of its cluster, as in {self._clusters[0]}.{key}"
        meant = meant_key(key, self._alone)
        if meant is not None:
            return f"did you mean {meant}?"
        if is_for_every_flow(key, ()) or is_for_every_worker(key) or key.startswith(_DRIVER):
            return None
        return self._elsewhere(key)

    def _elsewhere(self, key: str) -> str:
        """Return the remedy for a key that belongs to a client or a worker, or that nothing here knows."""
        if (client := _client_of(key)) is not None:
            source, target = self._pairs[0]
            alias = target if client is ClientKind.PRODUCER else source
            return (
                "a client setting needs the alias of its cluster and the kind of the client, as in "
                f"{alias}.{client.value}.{key}"
            )
        if (meant := meant_key(key, self._worker)) is not None:
            return f"did you mean {self._worker_key(meant)}?"
        return f"remove it, or write {self._flow_key(key)} if a class that this flow names reads it"

    def _worker_key(self, key: str) -> str:
        return f"{self._pairs[0][1]}.{key}"

    def _flow_key(self, key: str) -> str:
        return f"{'->'.join(self._pairs[0])}.{key}"


def _client_of(key: str) -> ClientKind | None:
    """Return the kind of client that has this setting: the consumer, if several have it."""
    kinds = (ClientKind.CONSUMER, ClientKind.PRODUCER, ClientKind.ADMIN)
    return next((kind for kind in kinds if key in CLIENT_KEYS[kind]), None)
