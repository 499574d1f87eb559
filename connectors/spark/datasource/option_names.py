"""Restores the case of option names: Spark makes them lower case, but aliases and some Connect keys contain
upper case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from connect.errors import ConfigError

__all__ = ["alias_names", "aliases", "written_names"]

_PLURAL: Final = ("transforms", "predicates", "config.providers")


def aliases(options: Mapping[str, str], key: str) -> list[str]:
    """The aliases an option lists, in order; raises :class:`~connect.errors.ConfigError` if two differ only in case."""
    listed = list(dict.fromkeys(alias.strip() for alias in options.get(key, "").split(",") if alias.strip()))
    if len({alias.lower() for alias in listed}) < len(listed):
        raise ConfigError(key, options[key], "Two aliases differ only in case, which Spark's options do not keep.")
    return listed


def alias_names(options: Mapping[str, str]) -> dict[str, str]:
    """The options, with the aliases of transformations and the like in their original case."""
    prefixes = {f"{key}.{alias}.".lower(): f"{key}.{alias}." for key in _PLURAL for alias in aliases(options, key)}
    named: dict[str, str] = {}
    for name, value in options.items():
        # The longest match: an alias may begin with another alias and a dot.
        lower = max((prefix for prefix in prefixes if name.lower().startswith(prefix)), key=len, default="")
        named[prefixes[lower] + name[len(lower) :] if lower else name] = value
    return named


def written_names(options: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """The options, renamed to those of ``keys`` that differ from their names only in case."""
    known: Collection[str] = set(keys)
    by_lower = {key.lower(): key for key in known}
    return {name if name in known else by_lower.get(name.lower(), name): value for name, value in options.items()}
