"""A flow of a mirror as one object: a configuration that is compiled to three connectors and read back from them. Pure.

Nothing else is stored of a flow, so it does not matter who has created or changed its connectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from connect.errors import ConfigError
from worker.errors import BadRequestError, ConflictError

__all__ = [
    "KINDS",
    "FlowName",
    "Part",
    "Parts",
    "Views",
    "compiled",
    "config_of_flow",
    "differing",
    "flows_of",
    "parts_of",
]

GivenConfig: TypeAlias = Mapping[str, str | None]
Views: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Every connector by name, with its ``info``."""

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f"org.apache.kafka.connect.mirror.{name}"
        for name in ("MirrorSourceConnector", "MirrorHeartbeatConnector", "MirrorCheckpointConnector")
    }
)
"""The connectors of each flow in the order in which they are written, with the class names that MirrorMaker stores."""

_ARROW: Final = "->"
_NAME: Final = "name"
_CLASS: Final = "connector.class"
_SOURCE: Final = "source.cluster.alias"
_TARGET: Final = "target.cluster.alias"
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_PROVIDERS: Final = "config.providers"


@dataclass(frozen=True, slots=True, order=True)
class FlowName:
    """The name of a flow: the aliases of its source and its target cluster."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> FlowName:
        """Parse a name such as ``A->B``; raise :class:`~worker.errors.BadRequestError` if it is invalid."""
        aliases = [alias.strip() for alias in text.split(_ARROW)]
        match aliases:
            case [source, target] if source and target and source != target:
                return cls(source, target)
        raise BadRequestError(
            f"{text!r} is not the name of a flow. Write SOURCE->TARGET, with the aliases of two clusters, or in a URL "
            "SOURCE-%3ETARGET."
        )

    def connector(self, kind: str) -> str:
        """Return the name of the connector of a kind, which is unique on workers with other flows."""
        return f"{self.source}-{self.target}-{kind}"

    def __str__(self) -> str:
        return f"{self.source}{_ARROW}{self.target}"


@dataclass(frozen=True, slots=True)
class Part:
    """A connector of a flow: its name, and its configuration if the connector exists."""

    name: str
    config: Mapping[str, str] | None = None


Parts: TypeAlias = Mapping[str, Part]
"""The three connectors of a flow, by kind."""


def flows_of(views: Views) -> dict[FlowName, Parts]:
    """Return the flows that have at least one connector.

    A connector belongs to a flow if it has the name that :func:`compiled` gives, or MirrorMaker's name, which is its
    kind.
    """
    found: dict[FlowName, dict[str, Part]] = {}
    for name in views:
        kind = next((kind for kind in KINDS if name.endswith(kind)), None)
        if kind is None:
            continue
        config = views[name]["info"]["config"]
        flow = FlowName(config.get(_SOURCE, ""), config.get(_TARGET, ""))
        own = flow.connector(kind)
        if name == own or (name == kind and own not in views):
            found.setdefault(flow, {})[kind] = Part(name, config)
    return {flow: _all_parts(flow, found[flow]) for flow in sorted(found)}


def parts_of(flow: FlowName, views: Views) -> Parts:
    """Return the connectors of a flow, which need not exist yet.

    Raises :class:`~worker.errors.ConflictError` if another flow uses one of their names: those of ``a-b->c`` and
    ``a->b-c`` would be the same.
    """
    parts = flows_of(views).get(flow) or _all_parts(flow, {})
    for part in parts.values():
        if part.config is None and part.name in views:
            other = views[part.name]["info"]["config"]
            raise ConflictError(
                f"The connector {part.name} exists and mirrors from {other.get(_SOURCE)!r} to {other.get(_TARGET)!r}"
                f" instead of {flow}. Delete it, or use another alias for one of the clusters."
            )
    return parts


def _all_parts(flow: FlowName, known: Mapping[str, Part]) -> Parts:
    return {kind: known.get(kind) or Part(flow.connector(kind)) for kind in KINDS}


def compiled(flow: FlowName, parts: Parts, config: GivenConfig) -> dict[str, dict[str, str | None]]:
    """Return the configuration of each connector of a flow, by name, in the order of :data:`KINDS`.

    Raises :class:`~connect.errors.ConfigError` if the configuration names a connector, or other clusters than the
    flow's.
    """
    for key, right in ((_NAME, None), (_CLASS, None), (_SOURCE, flow.source), (_TARGET, flow.target)):
        if config.get(key, right) != right:
            remedy = "a flow has three connectors, each with its own" if right is None else f"the flow is {flow}"
            raise ConfigError(key, config[key], f"Remove the key: {remedy}")
    own = {key: value for key, value in config.items() if not key.startswith(_PROVIDERS)}
    aliases = {_SOURCE: flow.source, _TARGET: flow.target}
    return {
        part.name: {
            **dict.fromkeys(_CONVERTERS, _BYTES),
            **own,
            **aliases,
            _NAME: part.name,
            _CLASS: KINDS[kind] if part.config is None else part.config.get(_CLASS, KINDS[kind]),
        }
        for kind, part in parts.items()
    }


def config_of_flow(parts: Parts) -> dict[str, str]:
    """Return the configuration that a flow was compiled from, according to its first connector."""
    return _shared(next((part.config for part in parts.values() if part.config is not None), {}))


def differing(parts: Parts) -> list[str]:
    """Return the names of a flow's connectors that are missing or configured differently from the first one."""
    config = config_of_flow(parts)
    return [part.name for part in parts.values() if part.config is None or _shared(part.config) != config]


def _shared(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that a connector has from its flow."""
    given = {key: value for key, value in config.items() if key not in (_NAME, _CLASS, _SOURCE, _TARGET)}
    return {key: value for key, value in given.items() if not (key in _CONVERTERS and value == _BYTES)}
