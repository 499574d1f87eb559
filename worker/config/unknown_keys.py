"""Warns about unknown keys: as in Kafka Connect they are not an error, but the log suggests the key that was meant.

Also warns about keys of Java workers that have no effect here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from connect.internals.kafka.settings.java_keys import CLIENT_KEYS, IGNORED_PREFIXES, Ignored

__all__ = [
    "KeyOwner",
    "key_of",
    "suggest_known_keys",
    "tell_of_idle_keys",
    "tell_of_unowned_keys",
    "tell_of_unused_keys",
]

_LIKENESS: Final = 0.88
"""High enough that keys which a plugin passes on, such as ``spark.*``, bring no suggestion."""

_SHORT: Final = 6
_LIKENESS_OF_SHORT: Final = 0.74
"""One wrong letter of four: nobody passes on keys so short."""


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """A plugin to which all keys below a prefix belong, by the ``name`` it has in the configuration.

    ``known`` are the whole names of its keys; ``None`` if it could not be loaded, which is reported elsewhere.
    ``old`` are older names, each with today's.
    """

    prefix: str
    name: str
    known: Collection[str] | None
    old: Mapping[str, str] = field(default_factory=dict)


def suggest_known_keys(keys: Collection[str], known: set[str]) -> Iterator[str]:
    """Suggest a known key for each unknown one that resembles it, except keys that are already set."""
    missing = known.difference(keys)
    for key in keys:
        if key not in known and (meant := _meant(key, missing)):
            yield f"The key {key} is unknown. Did you mean {meant}?"


def tell_of_unowned_keys(keys: Mapping[str, str], known: set[str], owners: Collection[KeyOwner]) -> Iterator[str]:
    """Warn about keys of a transformation, predicate or converter that it does not have, or that have a new name.

    Unlike a connector's, they are told even if they resemble nothing: nobody else could want them.
    """
    missing = known.difference(keys)
    unlisted: dict[str, None] = {}
    for key in keys:
        if key in known:
            continue
        owner = _owner(key, owners)
        if owner is None:
            unlisted |= dict.fromkeys(_unlisted(key))
        elif new := owner.old.get(key):
            yield _renamed(key, new, has_both=bool(keys.get(new)))
        elif owner.known is not None and key not in owner.known and not _meant(key, missing):
            yield f"The key {key} is unknown: {owner.name} has no such key. Correct it or remove it."
    yield from unlisted


def tell_of_unused_keys(
    keys: Mapping[str, str], known: set[str], owners: Collection[KeyOwner], passed: Collection[str], connector: str
) -> Iterator[str]:
    """Warn about keys that nobody has: neither the connector, which takes no others than those that begin as ``passed``
    says, nor its framework, nor a plugin. Those that resemble a known one have had a suggestion."""
    missing = known.difference(keys)
    for key, value in keys.items():
        is_taken = key in known or key.startswith((*_OF_THE_FRAMEWORK, *passed)) or _owner(key, owners) is not None
        if not is_taken and value.strip() and not _meant(key, missing):
            yield f"The key {key} has no effect: {_why_unused(key, connector)}."


def _why_unused(key: str, connector: str) -> str:
    client, _, setting = key.partition(".")
    if key.startswith(("confluent.license", "confluent.topic")):
        return "no licence is needed"
    if key == "bootstrap.servers":
        return "the brokers are those of the worker's file"
    if client in ("consumer", "producer", "admin") and setting:
        return f"set {client}.override.{setting}"
    return f"{connector} has no such key. Correct it or remove it"


def _owner(key: str, owners: Collection[KeyOwner]) -> KeyOwner | None:
    """Return the owner with the longest prefix: ``transforms`` may list ``a`` and ``a.b``."""
    found = [owner for owner in owners if key.startswith(owner.prefix)]
    return max(found, key=lambda owner: len(owner.prefix), default=None)


def _meant(key: str, missing: Collection[str]) -> str | None:
    cutoff = _LIKENESS if len(key) > _SHORT else _LIKENESS_OF_SHORT
    return next(iter(get_close_matches(key, missing, n=1, cutoff=cutoff)), None)


def _renamed(old: str, new: str, *, has_both: bool) -> str:
    if has_both:
        return f"The key {old} has no effect, because {new}, its new name, is set too: keep one of them."
    return f"The key {old} is an old name: call it {new}."


def _unlisted(key: str) -> Iterator[str]:
    """Warn about a transformation or predicate that is configured but not listed."""
    listing, _, below = key.partition(".")
    if listing in _LISTINGS and (alias := below.partition(".")[0]):
        yield (
            f"The keys {listing}.{alias}.* have no effect, because {listing} does not list {alias}: list it there, or "
            "remove them."
        )


_LISTINGS: Final = ("transforms", "predicates")
_OF_THE_FRAMEWORK: Final = (
    *(f"{listing}." for listing in _LISTINGS),
    "producer.override.",
    "consumer.override.",
    "admin.override.",
    "topic.creation.",
)
"""Below these the framework takes keys of clients, plugins and groups of topics."""


def key_of(warning: str, keys: Collection[str]) -> str | None:
    """Return the key among ``keys`` that a warning about a configuration concerns: the first that it names."""
    words = [word.strip(".,:;()'\"").partition("=")[0] for word in warning.split()]
    return next((word for word in words if word in keys), None)


_LISTENERS: Final = "set listeners, such as http://localhost:8083"
_NO_JMX: Final = "there is no JMX: metrics are at /metrics, or are pushed to metrics.otlp.endpoint"
_IDLE: Final = {
    "rest.port": _LISTENERS,
    "rest.host.name": _LISTENERS,
    "metric.reporters": f"a Java class cannot run here; {_NO_JMX}",
    "auto.include.jmx.reporter": _NO_JMX,
}
"""Keys of a worker's file, also of older versions of Kafka Connect, and what to do in their place."""


def tell_of_idle_keys(keys: Collection[str], own: Collection[str]) -> Iterator[str]:
    """Warn about each key of a Java worker that has no effect here, except keys that are the worker's ``own``."""
    for key in keys:
        reason = None if key in own else _IDLE.get(key) or _ignored_by_clients(key)
        if reason:
            yield f"The key {key} has no effect: {reason}."


def _ignored_by_clients(key: str) -> str | None:
    decisions = [settings[key] for settings in CLIENT_KEYS.values() if key in settings]
    reasons = [decision.reason for decision in decisions if isinstance(decision, Ignored)]
    if reasons and len(reasons) == len(decisions):
        return reasons[0]
    return next((reason for prefix, reason in IGNORED_PREFIXES.items() if key.startswith(prefix)), None)
