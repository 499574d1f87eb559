"""Reads the file of MirrorMaker 2 (``mm2.properties``) and compiles its flows to workers and connectors.

A flow ``A->B`` copies from the cluster with the alias ``A`` to the one with the alias ``B``. It becomes a worker
attached to ``B``, and three connectors on it. Each key reaches the same clients and connectors as with MirrorMaker;
keys that it drops silently are listed by :func:`~connectors.mirror.lost_keys.lost_keys`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from types import MappingProxyType
from typing import Final

from connect.errors import ConfigError
from connectors.mirror.old_names import OLD_NAMES

__all__ = ["CLIENTS", "CONNECTORS", "Flow", "Flows", "is_for_every_flow", "is_for_every_worker", "is_of_clients"]

CONNECTORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f"org.apache.kafka.connect.mirror.{name}"
        for name in ("MirrorSourceConnector", "MirrorHeartbeatConnector", "MirrorCheckpointConnector")
    }
)
"""The connectors of each flow, by name, with the class names that MirrorMaker stores."""

_CLUSTERS: Final = "clusters"
_BOOTSTRAP: Final = "bootstrap.servers"
_HEARTBEATS: Final = "emit.heartbeats.enabled"
_ENABLED: Final = "enabled"
_ARROW: Final = "->"
CLIENTS: Final = ("producer", "consumer", "admin")
"""The kinds of clients that have settings of their own."""

_PROVIDERS: Final = "config.providers"
_POLICY: Final = "replication.policy"
_OWN: Final = "mirror."
"""The prefix of connector keys that MirrorMaker does not have."""
_WORKER_WIDE: Final = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    _POLICY,
)
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow, compiled to the properties of its worker and the configuration of each connector."""

    source: str
    target: str
    enabled: bool
    worker: Mapping[str, str] = field(repr=False)
    connectors: Mapping[str, Mapping[str, str]] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the flow, as written in the file."""
        return f"{self.source}{_ARROW}{self.target}"


class Flows:
    """The flows of a file. Raises :class:`~connect.errors.ConfigError` if its clusters are invalid.

    ``props`` is the file with unresolved references. ``connector_keys`` are the keys of all three connectors, which
    apply to every flow when they stand alone.
    """

    def __init__(self, props: Mapping[str, str], connector_keys: Collection[str]) -> None:
        self._props = props
        self._connector_keys = connector_keys
        self.clusters = _clusters(props)
        _check_names(props, self.clusters)

    def running(self, targets: Sequence[str] = ()) -> tuple[Flow, ...]:
        """Return the flows to run: those that are enabled, and those whose heartbeats the file enables.

        ``targets`` selects the flows into these clusters. Raises :class:`~connect.errors.ConfigError` if none is left.
        """
        for alias in targets:
            if alias not in self.clusters:
                raise ConfigError(
                    "--clusters", alias, f"The file does not define this cluster. Use one of {', '.join(self.clusters)}"
                )
        pairs = [pair for pair in permutations(self.clusters, 2) if not targets or pair[1] in targets]
        flows = tuple(self.flow(*pair) for pair in pairs if self._runs(*pair))
        if not flows:
            first, second = next(iter(pairs), ("A", "B"))
            into = f" into {', '.join(targets)}" if targets else ""
            raise ConfigError(_key(first, second, _ENABLED), None, f"No flow{into} is enabled. Set this key to true")
        return flows

    def flow(self, source: str, target: str) -> Flow:
        """Return one flow between two of the clusters, whether it is enabled or not."""
        for alias in (source, target):
            if not self._of_cluster(alias).get(_BOOTSTRAP, "").strip():
                raise ConfigError(f"{alias}.{_BOOTSTRAP}", None, "It is not set. List brokers of this cluster")
        connectors = {name: self._connector(name, source, target) for name in CONNECTORS}
        return Flow(source, target, self._is_enabled(source, target), self._worker(source, target), connectors)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The source and the target of each flow that there can be, those that are enabled first."""
        return sorted(permutations(self.clusters, 2), key=lambda pair: not self._is_enabled(*pair))

    def _runs(self, source: str, target: str) -> bool:
        asked = self._props.get(_key(source, target, _HEARTBEATS), self._props.get(_HEARTBEATS, "false"))
        return self._is_enabled(source, target) or _is_true(asked)

    def _is_enabled(self, source: str, target: str) -> bool:
        return _is_true(self._props.get(_key(source, target, _ENABLED), "false"))

    def _worker(self, source: str, target: str) -> dict[str, str]:
        return {
            "client.id": f"{source}{_ARROW}{target}",
            "group.id": f"{source}-mm2",
            "offset.storage.topic": f"mm2-offsets.{source}.internal",
            "status.storage.topic": f"mm2-status.{source}.internal",
            "config.storage.topic": f"mm2-configs.{source}.internal",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
            "header.converter": _BYTES,
            **self._of_cluster(target),
            **{key: value for key, value in self._props.items() if is_for_every_worker(key)},
        }

    def _connector(self, name: str, source: str, target: str) -> dict[str, str]:
        wide = {key: value for key, value in self._props.items() if is_for_every_flow(key, self._connector_keys)}
        return {
            _ENABLED: "false",
            **wide,
            **dict(_for_connector("source", self._of_cluster(source))),
            **dict(_for_connector("target", self._of_cluster(target))),
            "name": wide.get("name", name),
            "connector.class": wide.get("connector.class", CONNECTORS[name]),
            "source.cluster.alias": source,
            "target.cluster.alias": target,
            **_below(self._props, _key(source, target, "")),
        }

    def _of_cluster(self, alias: str) -> dict[str, str]:
        """Return the keys of a cluster without its alias, with client settings repeated for each kind of client."""
        own = _below(self._props, f"{alias}.")
        shared = {key: value for key, value in self._props.items() if is_of_clients(key)} | {
            key: value for key, value in own.items() if is_of_clients(key)
        }
        repeated = {f"{client}.{key}": value for key, value in shared.items() for client in CLIENTS}
        return {**shared, **repeated, **own}


def _clusters(props: Mapping[str, str]) -> tuple[str, ...]:
    aliases = tuple(alias.strip() for alias in props.get(_CLUSTERS, "").split(","))
    if not any(aliases):
        raise ConfigError(_CLUSTERS, props.get(_CLUSTERS), "List the aliases of at least two clusters, as in A, B")
    if not all(aliases) or len(set(aliases)) < len(aliases):
        raise ConfigError(_CLUSTERS, props[_CLUSTERS], "An alias is empty or given twice")
    if len(aliases) == 1:
        raise ConfigError(_CLUSTERS, props[_CLUSTERS], "A flow needs two clusters: add another one")
    return aliases


def _check_names(props: Mapping[str, str], clusters: Sequence[str]) -> None:
    for key in props:
        source, arrow, rest = key.partition(_ARROW)
        if not arrow:
            continue
        known = any(rest.startswith(f"{alias}.") for alias in clusters if alias != source)
        if source not in clusters or not known:
            raise ConfigError(
                key, props[key], f"A flow connects two of the clusters of this file: {', '.join(clusters)}"
            )


def _for_connector(side: str, props: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in props.items():
        yield f"{side}.{key}" if key.startswith(CLIENTS) else f"{side}.cluster.{key}", value


def is_for_every_flow(key: str, connector_keys: Collection[str]) -> bool:
    """Return whether a key without a prefix applies to the connectors of every flow."""
    return key in connector_keys or key in OLD_NAMES.values() or key.startswith((_PROVIDERS, _POLICY, _OWN))


def is_for_every_worker(key: str) -> bool:
    """Return whether a key without a prefix applies to the worker of every flow."""
    return key.startswith((*_WORKER_WIDE, _PROVIDERS))


def is_of_clients(key: str) -> bool:
    """Return whether a key, with the alias of a cluster or without, is repeated for each kind of client."""
    return key in {_BOOTSTRAP, "security.protocol"} or (key.startswith(("ssl.", "sasl.")) and key != "ssl.client.auth")


def _below(props: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in props.items() if key.startswith(prefix)}


def _key(source: str, target: str, rest: str) -> str:
    return f"{source}{_ARROW}{target}.{rest}"


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
