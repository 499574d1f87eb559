"""A flow of a mirror as one object: a configuration, compiled to three connectors and read back from them. Pure.

Nothing else is stored of a flow, so that whatever has made or changed its connectors, this is what there is.
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
"""The connectors of each flow in the order in which they are written, with their classes as MirrorMaker stores them."""

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
    """The name of a flow: the aliases of the clusters that it leads from and to."""

    source: str
    target: str

    @classmethod
    def parse(cls, text: str) -> FlowName:
        """Read a name such as ``A->B``; raises :class:`~worker.errors.BadRequestError` if it is none."""
        aliases = [alias.strip() for alias in text.split(_ARROW)]
        match aliases:
            case [source, target] if source and target and source != target:
                return cls(source, target)
        raise BadRequestError(
            f"{text!r} names no flow. Write it as SOURCE->TARGET, with the aliases of two clusters, and in a URL as "
            "SOURCE-%3ETARGET."
        )

    def connector(self, kind: str) -> str:
        """The name of the connector of a kind, for workers that run others, too."""
        return f"{self.source}-{self.target}-{kind}"

    def __str__(self) -> str:
        return f"{self.source}{_ARROW}{self.target}"


@dataclass(frozen=True, slots=True)
class Part:
    """A connector of a flow: its name, and its configuration if there is such a connector."""

    name: str
    config: Mapping[str, str] | None = None


Parts: TypeAlias = Mapping[str, Part]
"""The three parts of a flow, by their kinds."""


def flows_of(views: Views) -> dict[FlowName, Parts]:
    """The flows of which there is a connector.

    That is one of the name that :func:`compiled` gives, or of MirrorMaker's own, which is that of its kind.
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
    """The parts of a flow, of which none may be there yet.

    Raises :class:`~worker.errors.ConflictError` if another flow has the name of one of its connectors: those of
    ``a-b->c`` and ``a->b-c`` would be called the same.
    """
    parts = flows_of(views).get(flow) or _all_parts(flow, {})
    for part in parts.values():
        if part.config is None and part.name in views:
            other = views[part.name]["info"]["config"]
            raise ConflictError(
                f"The connector {part.name} is there, and mirrors from {other.get(_SOURCE)!r} to {other.get(_TARGET)!r}"
                f" instead of {flow}. Delete it, or give a cluster another alias."
            )
    return parts


def _all_parts(flow: FlowName, known: Mapping[str, Part]) -> Parts:
    return {kind: known.get(kind) or Part(flow.connector(kind)) for kind in KINDS}


def compiled(flow: FlowName, parts: Parts, config: GivenConfig) -> dict[str, dict[str, str | None]]:
    """The configuration of each connector of a flow, by its name, in the order of :data:`KINDS`.

    Raises :class:`~connect.errors.ConfigError` if it names a connector, or clusters that are not the flow's.
    """
    for key, right in ((_NAME, None), (_CLASS, None), (_SOURCE, flow.source), (_TARGET, flow.target)):
        if config.get(key, right) != right:
            remedy = "a flow is three connectors, each with its own" if right is None else f"this is the flow {flow}"
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
    """The configuration that a flow was compiled of, as the first of its connectors has it."""
    return _shared(next((part.config for part in parts.values() if part.config is not None), {}))


def differing(parts: Parts) -> list[str]:
    """The names of the connectors of a flow that are missing, or have another configuration than the first has."""
    config = config_of_flow(parts)
    return [part.name for part in parts.values() if part.config is None or _shared(part.config) != config]


def _shared(config: Mapping[str, str]) -> dict[str, str]:
    """What a connector has from its flow."""
    given = {key: value for key, value in config.items() if key not in (_NAME, _CLASS, _SOURCE, _TARGET)}
    return {key: value for key, value in given.items() if not (key in _CONVERTERS and value == _BYTES)}
