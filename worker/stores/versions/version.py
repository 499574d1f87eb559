"""Versions of configurations: what a connector's configuration was, who changed it, and when. Pure functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.errors import DataError
from worker.stores.java_json import load_object, text, whole

__all__ = [
    "MOST_DELETED",
    "MOST_VERSIONS",
    "Seen",
    "Version",
    "VersionStore",
    "document",
    "forgotten",
    "news",
    "parse",
    "rebased",
    "vanished",
]

MOST_VERSIONS: Final = 50
"""The number of versions kept for a connector."""

MOST_DELETED: Final = 100
"""The number of deleted connectors whose versions are kept, so that they can be created again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A configuration in the config store, or its deletion (``None``). ``at`` is in milliseconds since 1970."""

    connector: str
    revision: int
    at: int
    author: str | None
    config: Mapping[str, str] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a connector's configuration; no configuration means that the connector was deleted.

    Numbers begin with 1.
    """

    number: int
    seen: Seen


class VersionStore(ABC):
    """Stores versions. Used by one thread; methods block.

    They raise :class:`~connect.errors.ConnectError`. Writing a version twice has no effect.
    """

    @abstractmethod
    def latest(self) -> dict[str, Version]:
        """Return the newest version of each connector."""

    @abstractmethod
    def versions(self, connector: str) -> list[Version]:
        """Return the stored versions of a connector, in order: at most the last ``MOST_VERSIONS``."""

    @abstractmethod
    def append(self, versions: Sequence[Version], forgotten: Sequence[Version]) -> None:
        """Store versions, and delete the connectors whose last versions are ``forgotten``."""

    @abstractmethod
    def close(self) -> None:
        """Release what the store holds."""


def news(latest: Mapping[str, Version], seen: Iterable[Seen]) -> list[Version]:
    """Return the new versions in the changes seen, which are in order for each connector.

    A configuration that was written again without a change is not a new version, nor is a revision older than the
    newest version, which is already stored.
    """
    last = dict(latest)
    found: list[Version] = []
    for item in seen:
        before = last.get(item.connector)
        if before is not None and (item.revision <= before.seen.revision or item.config == before.seen.config):
            continue
        if before is None and item.config is None:
            continue
        version = Version(1 if before is None else before.number + 1, item)
        last[item.connector] = version
        found.append(version)
    return found


def rebased(latest: Mapping[str, Version], present: Iterable[Seen]) -> dict[str, Version]:
    """Return the newest versions with revisions comparable to the present ones, if these have started over.

    They start over if the config topic is created again.
    """
    found = dict(latest)
    for item in present:
        version = found.get(item.connector)
        if version is not None and version.seen.revision > item.revision:
            found[item.connector] = replace(version, seen=replace(version.seen, revision=item.revision - 1))
    return found


def vanished(latest: Mapping[str, Version], present: Iterable[Seen], at: int) -> list[Seen]:
    """Return deletions of connectors that no longer exist, although no deletion was seen."""
    names = {item.connector for item in present}
    return [
        Seen(name, version.seen.revision + 1, at, None, None)
        for name, version in latest.items()
        if name not in names and version.seen.config is not None
    ]


def forgotten(latest: Mapping[str, Version], most: int = MOST_DELETED) -> list[Version]:
    """Return the last versions of the connectors to delete from the history, earliest deletions first."""
    deleted = [version for version in latest.values() if version.seen.config is None]
    deleted.sort(key=lambda version: (version.seen.at, version.seen.connector))
    return deleted[: max(0, len(deleted) - most)]


def document(version: Version) -> dict[str, Any]:
    """Return a version as it is stored in JSON."""
    seen = version.seen
    return {
        "connector": seen.connector,
        "version": version.number,
        "revision": seen.revision,
        "at": seen.at,
        "author": seen.author,
        "config": None if seen.config is None else dict(seen.config),
    }


def parse(data: bytes) -> Version:
    """Parse the output of :func:`document`. Raises :class:`~connect.errors.DataError` if ``data`` is something else."""
    found = load_object(data)
    config, author = found.get("config"), found.get("author")
    if not (config is None or (isinstance(config, dict) and all(isinstance(item, str) for item in config.values()))):
        raise DataError("'config' should be an object of texts, or null")
    if not (author is None or isinstance(author, str)):
        raise DataError("'author' should be a string or null")
    seen = Seen(text(found, "connector"), whole(found, "revision"), whole(found, "at"), author, config)
    return Version(whole(found, "version"), seen)
