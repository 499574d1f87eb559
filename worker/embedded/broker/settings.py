"""The settings of an embedded broker: a single KRaft node on loopback, small and fast."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connect.errors import ConfigError
from connect.internals.jvm.home import sluice_home
from worker.embedded.ports import HOST

__all__ = [
    "DEFAULT_HEAP",
    "NODE_ID",
    "BrokerConfig",
    "Ports",
    "is_plaintext",
    "render_properties",
    "server_properties",
]

DEFAULT_HEAP = "256m"
NODE_ID = 1

_LARGEST_PORT = 65535
_HEAP = re.compile(r"[1-9][0-9]*[kKmMgG]?")
_LISTENERS = "listeners"
_LISTENER_PROTOCOLS = "listener.security.protocol.map"
_PROTOCOLS = {
    "CLIENT": "PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
    # Kafka's own defaults, which it drops as soon as any value is given.
    **{name: name for name in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")},
}

_OWN_KEYS = frozenset(
    {
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)

_SINGLE_NODE = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Records may carry timestamps from years ago, which time retention would delete at once.
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    # After kill -9 the controller rejects the broker until the killed one's session has timed out.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The default of 128 MiB would be half of the heap.
    "log.cleaner.dedupe.buffer.size": "8388608",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings of an embedded broker."""

    folder: Path = field(default_factory=lambda: sluice_home() / "broker")
    """The folder for its data, log and state; each broker needs its own."""
    port: int | None = None
    """The port for clients, on loopback: 0 for any free one, ``None`` for 9092 if that is free, else any.
    The choice is stored in the folder and kept."""
    heap: str = DEFAULT_HEAP
    """The maximum heap of the JVM, as ``-Xmx`` takes it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Server properties on top of, or in place of, those of a small single node."""
    start_timeout: float = 90.0
    """How many seconds the broker may take to get ready after its launch."""

    def __post_init__(self) -> None:
        if _HEAP.fullmatch(self.heap) is None:
            raise ConfigError("heap", self.heap, "not a size; set it to one such as 256m or 1g")
        if self.port is not None and not 0 <= self.port <= _LARGEST_PORT:
            raise ConfigError("port", self.port, f"not a port; set it to a number from 0 to {_LARGEST_PORT}")


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a broker: for clients, and for its controller."""

    broker: int
    controller: int

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients."""
        return f"{HOST}:{self.broker}"


def server_properties(ports: Ports, data: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Return all server properties, ``extra`` last. Raises ``ConfigError`` for keys reserved for the embedded broker.

    ``listeners`` in ``extra`` are added to its own, and so are protocol names.
    """
    for key in sorted(_OWN_KEYS & extra.keys()):
        raise ConfigError(key, extra[key], "set by the embedded broker; use its port and folder settings")
    client, more = f"CLIENT://{HOST}:{ports.broker}", _listed(extra, _LISTENERS)
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{ports.controller}",
        "advertised.listeners": ",".join((client, *more)),
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
        **_SINGLE_NODE,
        **extra,
        _LISTENERS: ",".join((client, f"CONTROLLER://{HOST}:{ports.controller}", *more)),
        _LISTENER_PROTOCOLS: ",".join(f"{name}:{protocol}" for name, protocol in _protocols(extra).items()),
    }


def is_plaintext(extra: Mapping[str, str]) -> bool:
    """Return whether clients connect without TLS and SASL, which is the default unless ``extra`` changes it."""
    return _protocols(extra)["CLIENT"] == "PLAINTEXT"


def _protocols(extra: Mapping[str, str]) -> dict[str, str]:
    pairs = (item.partition(":") for item in _listed(extra, _LISTENER_PROTOCOLS))
    return _PROTOCOLS | {name.strip(): protocol.strip() for name, _, protocol in pairs}


def _listed(extra: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in extra.get(key, "").split(",") if item.strip()]


def render_properties(properties: Mapping[str, str]) -> str:
    """Render ``properties`` as a Java properties file."""
    return "".join(f"{_escape(key, _KEY)}={_escape(value, _VALUE)}\n" for key, value in properties.items())


_VALUE = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_KEY = {**_VALUE, " ": "\\ ", ":": "\\:", "=": "\\=", "#": "\\#", "!": "\\!"}


def _escape(text: str, replacements: Mapping[str, str]) -> str:
    escaped = "".join(replacements.get(character, _ascii(character)) for character in text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _ascii(character: str) -> str:
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
