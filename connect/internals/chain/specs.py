"""The transformations and predicates of a connector's configuration, parsed in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["VERSION", "PredicateSpec", "TransformationSpec", "predicate_specs", "props_below", "transformation_specs"]

VERSION: Final = "plugin.version"
"""The key, below a plugin's prefix, that selects the version of the plugin (KIP-891)."""

_TRANSFORMS: Final = "transforms"
_PREDICATES: Final = "predicates"


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate as configured; ``type`` is empty if the configuration has none.

    ``version`` is the requested version range, if there is one.
    """

    alias: str
    type: str
    props: Mapping[str, str]
    version: str | None = None

    @property
    def prefix(self) -> str:
        """The prefix of its keys."""
        return f"{_PREDICATES}.{self.alias}."


@dataclass(frozen=True, slots=True)
class TransformationSpec:
    """A transformation as configured, with the predicate that chooses its records."""

    alias: str
    type: str
    props: Mapping[str, str]
    predicate: PredicateSpec | None = None
    negate: bool = False
    version: str | None = None

    @property
    def prefix(self) -> str:
        """The prefix of its keys."""
        return f"{_TRANSFORMS}.{self.alias}."


def transformation_specs(props: Mapping[str, str]) -> tuple[TransformationSpec, ...]:
    """Return the transformations that ``transforms`` lists, in order. Incomplete ones are left to validation."""
    return tuple(_transformation(props, alias) for alias in _aliases(props, _TRANSFORMS))


def predicate_specs(props: Mapping[str, str]) -> tuple[PredicateSpec, ...]:
    """Return the predicates that ``predicates`` lists, in order. Incomplete ones are left to validation."""
    return tuple(_predicate(props, alias) for alias in _aliases(props, _PREDICATES))


def props_below(props: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the keys that begin with ``prefix``, without it."""
    return {name.removeprefix(prefix): value for name, value in props.items() if name.startswith(prefix)}


def _transformation(props: Mapping[str, str], alias: str) -> TransformationSpec:
    own = props_below(props, f"{_TRANSFORMS}.{alias}.")
    kind, chosen_by, version = own.pop("type", ""), own.pop("predicate", None), own.pop(VERSION, None)
    negate = own.pop("negate", "false").lower() == "true"
    return TransformationSpec(alias, kind, own, _predicate(props, chosen_by) if chosen_by else None, negate, version)


def _predicate(props: Mapping[str, str], alias: str) -> PredicateSpec:
    own = props_below(props, f"{_PREDICATES}.{alias}.")
    kind, version = own.pop("type", ""), own.pop(VERSION, None)
    return PredicateSpec(alias, kind, own, version)


def _aliases(props: Mapping[str, str], key: str) -> list[str]:
    return list(dict.fromkeys(alias.strip() for alias in props.get(key, "").split(",") if alias.strip()))
