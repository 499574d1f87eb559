"""Resolution of references ``${provider:path:key}`` in a configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from connect.providers.provider import ConfigProvider

__all__ = ["ResolvedConfig", "has_reference", "resolve_references", "restore_references"]


class _Place(NamedTuple):
    provider: str
    path: str


class _Reference(NamedTuple):
    """A reference in a text, from ``start`` to ``end``."""

    start: int
    end: int
    place: _Place
    key: str


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A configuration with its references resolved.

    ``secret_keys`` are the keys whose values contain a provider's value and must not be shown. ``ttls_ms`` has, by
    provider and path, the milliseconds until values expire, where the provider sets them.
    """

    values: dict[str, str | None] = field(repr=False)
    secret_keys: frozenset[str]
    ttls_ms: dict[tuple[str, str], int]

    @property
    def ttl_ms(self) -> int | None:
        """The milliseconds until the first value expires; ``None`` if none does."""
        return min(self.ttls_ms.values(), default=None)


def has_reference(value: str | None) -> bool:
    """Return whether ``value`` contains a reference to a config provider, configured or not."""
    return value is not None and next(_references(value), None) is not None


def resolve_references(props: Mapping[str, str | None], providers: Mapping[str, ConfigProvider]) -> ResolvedConfig:
    """Return ``props`` with each reference replaced for which one of ``providers`` has a value.

    Other references stay as they are. Values from providers are not searched for references. Each path is looked up
    once.
    """
    found: dict[_Place, Mapping[str, str]] = {}
    ttls_ms: dict[tuple[str, str], int] = {}
    for place, keys in _referenced_keys(props, providers).items():
        data = providers[place.provider].get(place.path, frozenset(keys))
        found[place] = data.values
        if data.ttl_ms is not None and data.ttl_ms >= 0:
            ttls_ms[place] = data.ttl_ms
    values: dict[str, str | None] = {}
    secret_keys = set()
    for name, value in props.items():
        values[name], replaced = (None, False) if value is None else _replace(value, found)
        if replaced:
            secret_keys.add(name)
    return ResolvedConfig(values, frozenset(secret_keys), ttls_ms)


def restore_references(props: Mapping[str, str | None], written: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return ``props``, which a plugin made from the resolved form of ``written``, with references in place of secrets.

    A key that was written with a reference gets that reference back, so that no secret is stored.
    """
    return {key: written[key] if has_reference(written.get(key)) else value for key, value in props.items()}


def _referenced_keys(
    props: Mapping[str, str | None], providers: Mapping[str, ConfigProvider]
) -> dict[_Place, set[str]]:
    keys: defaultdict[_Place, set[str]] = defaultdict(set)
    for value in props.values():
        for reference in _references(value or ""):
            if reference.place.provider in providers:
                keys[reference.place].add(reference.key)
    return keys


def _replace(value: str, found: Mapping[_Place, Mapping[str, str]]) -> tuple[str, bool]:
    parts: list[str] = []
    kept = 0
    for reference in _references(value):
        text = found.get(reference.place, {}).get(reference.key)
        if text is not None:
            parts += (value[kept : reference.start], text)
            kept = reference.end
    return "".join([*parts, value[kept:]]), bool(parts)


def _references(text: str) -> Iterator[_Reference]:
    """Yield the references in a text: ``${``, then ``provider:key`` or ``provider:path:key``, up to the first ``}``.

    A regular expression would take cubic time if no brace closes; this looks at each character once or twice.
    """
    end = 0
    while (start := text.find("${", end)) >= 0 and (closing := text.find("}", start)) >= 0:
        provider, *rest = text[start + 2 : closing].split(":", 2)
        end = closing + 1
        if rest:
            yield _Reference(start, end, _Place(provider, rest[0] if len(rest) == 2 else ""), rest[-1])
