"""Warns about unknown keys: as in Kafka Connect they are not an error, but the log suggests the key that was meant.

Also warns about keys of Java workers that have no effect here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final

from connect.kafka.settings.java_keys import CLIENT_KEYS, IGNORED_PREFIXES, Ignored

__all__ = ["suggest_known_keys", "tell_of_idle_keys"]

_LIKENESS: Final = 0.88
"""High enough that keys which a plugin passes on, such as ``spark.*``, bring no suggestion."""

_SHORT: Final = 6
_LIKENESS_OF_SHORT: Final = 0.74
"""One wrong letter of four: nobody passes on keys so short."""


def suggest_known_keys(keys: Collection[str], known: set[str]) -> Iterator[str]:
    """Suggest a known key for each unknown one that resembles it, except keys that are already set."""
    missing = known.difference(keys)
    for key in keys:
        cutoff = _LIKENESS if len(key) > _SHORT else _LIKENESS_OF_SHORT
        if key not in known and (meant := get_close_matches(key, missing, n=1, cutoff=cutoff)):
            yield f"The key {key} is unknown. Did you mean {meant[0]}?"


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
