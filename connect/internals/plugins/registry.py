"""The plugin registry: finds plugins by name without importing them.

Plugins are listed in ``plugins.toml`` files: the one that comes with Sluice, one in each folder of ``plugin.path`` (or
in its direct subfolders), and one in each package that the entry point group ``sluice.plugins`` names. Any other class
is a plugin only if the worker's file allows it (``plugin.import.allowlist``), because configurations may come from
anyone and importing a module runs it. Classes are imported only by :meth:`PluginRegistry.load`, which only child
processes call (invariant I7).

Packages and folders whose plugins cannot be listed are skipped and kept in :attr:`PluginRegistry.broken`, so that one
author's mistake does not disable the plugins of all others.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from connect.config.validators import matches_wildcard
from connect.errors import PluginError
from connect.internals.plugins.class_outline import ancestors, is_importable
from connect.internals.plugins.entry import UNDEFINED, PluginEntry, PluginKind
from connect.internals.plugins.interpreters import ENTRY_POINTS, entries_of_place, running_folder
from connect.internals.plugins.java_plugins import JavaListing
from connect.internals.plugins.listing import BrokenPackage, built_in_entries, built_in_file, entries_of_package
from connect.internals.plugins.loading import KIND_CLASSES, load_class
from connect.internals.plugins.versions import Version, VersionRange

__all__ = ["PluginRegistry", "PluginVersionError", "UnlistedPluginError"]

_JAVA: Final = "java"
_ALLOWLIST: Final = "plugin.import.allowlist"
_LIKENESS: Final = 0.75
_LIKENESS_OF_VENDORS: Final = 0.85
"""One or two wrong letters: a class with a word more is another class."""
_MARGIN: Final = 0.08
_MOST_SUGGESTED: Final = 3
_JAVA_CLASS: Final = re.compile(r"(com|org|io|net|dev)(\.[a-z][a-z0-9_]*)+\.[A-Z][\w$]*")
_VARIANTS: Final = ("key", "value", "header")
_OF_VENDORS: Final = frozenset({PluginKind.TRANSFORMATION, PluginKind.PREDICATE})
_NOT_HERE: Final = (
    "Worker {} has no such plugin: if others of its cluster have it, install it there too, since every worker may have "
    "to run every connector"
)
_FILE: Final = built_in_file().name
_KEPT: Final = 1024
_KEPT_INDEXES: Final = 4
_SETTLED_SECONDS: Final = 5.0
"""After so many seconds without a change, an installer has left a folder."""


class PluginVersionError(PluginError):
    """A plugin exists, but not in the requested version; ``available`` lists the versions that do."""

    def __init__(self, message: str, available: Sequence[str]) -> None:
        super().__init__(message)
        self.available = tuple(available)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.available)


class UnlistedPluginError(PluginError):
    """A class that no ``plugins.toml`` lists is not allowed, or not of the requested kind."""


class PluginRegistry:
    """Finds plugins by name. It is immutable, so threads may share it."""

    def __init__(
        self,
        entries: Iterable[PluginEntry],
        allowed: Iterable[str] = (),
        broken: Iterable[BrokenPackage] = (),
        worker: str | None = None,
        java: JavaListing | None = None,
    ) -> None:
        """Make a registry; ``allowed`` are patterns (``*``: any text) of dotted paths that need not be listed.

        ``worker`` names the worker that has these plugins, if there are several workers. ``java`` has the plugins of
        Java, which count where no other has the name.
        """
        self._entries = tuple(entries)
        self._java = java or JavaListing(())
        self._home: str | None = None
        self.interpreter_hint = ""
        """What to do about a plugin that is not there, in a process of a folder with an interpreter of its own."""
        self.broken = tuple(broken)
        self._place = f". {_NOT_HERE.format(worker)}" if worker else ""
        self._allowed = tuple(written.strip().replace("$", ".") for written in allowed)
        # A source is read once and not for every status that shows the type of a connector.
        self._kept = lru_cache(maxsize=_KEPT)(self._unlisted)
        self._by_name = _by_name(self._entries)

    @classmethod
    def discover(
        cls, plugin_path: Sequence[str | Path] = (), allowed: Iterable[str] = (), worker: str | None = None
    ) -> PluginRegistry:
        """Read all ``plugins.toml`` files; broken packages and folders are skipped.

        Raises :class:`~connect.errors.PluginError` if ``plugin_path`` names something that is not a folder.
        """
        entries = list(built_in_entries())
        broken: list[BrokenPackage] = []
        for point in _packages_of_plugins():
            try:
                entries += entries_of_package(point.value, None if point.dist is None else point.dist.version)
            except PluginError as error:
                name = f"Package {point.value} (entry point {point.name} of {ENTRY_POINTS}{_distribution(point)})"
                broken.append(BrokenPackage(name, str(error)))
        for path in plugin_path:
            folder = Path(path)
            if not folder.is_dir():
                raise PluginError(f"plugin.path names {folder}, which is not a folder; correct or remove it.")
            for place in (folder, *sorted(child for child in folder.iterdir() if child.is_dir())):
                try:
                    entries += entries_of_place(place)
                except PluginError as error:
                    broken.append(BrokenPackage(f"Folder {place}", str(error)))
        registry = cls(entries, allowed, broken, worker, JavaListing(map(Path, plugin_path)))
        if (own := running_folder([Path(path) for path in plugin_path])) is not None:
            registry.interpreter_hint = (
                f" The connector runs in the interpreter of {own}: to have the plugin there, too, run sluice plugins "
                f"install PACKAGE --into {own}"
            )
        return registry

    def beside(self, entry: PluginEntry) -> PluginRegistry:
        """Return this registry for the other plugins of a connector: those from its own package precede newer versions.

        A connector and its transformations thus have the same version unless the configuration says otherwise.
        """
        registry = copy(self)
        registry._home = entry.home
        return registry

    def entries(self, kind: PluginKind | None = None) -> tuple[PluginEntry, ...]:
        """Return all plugins, or those of one kind, by class name, with the oldest version of each first.

        Java's plugins are among them.
        """
        both = (*self._entries, *self._java.entries)
        chosen = (entry for entry in both if kind is None or entry.kind is kind)
        return tuple(sorted(chosen, key=lambda entry: (entry.class_name, Version(entry.version or UNDEFINED))))

    def versions(self, entry: PluginEntry) -> list[str]:
        """Return the known versions of a plugin, oldest first."""
        known = {same.version for same in self._same(entry) if same.version is not None}
        return sorted(known, key=Version)

    def find(self, kind: PluginKind, name: str, version: str | None = None) -> PluginEntry:
        """Return the plugin that a configuration calls ``name``: the newest one, or the newest in a version range.

        A dotted path that no file lists must be allowed, and its source must show that it is of the requested kind;
        nothing is imported. Raises :class:`UnlistedPluginError` if that fails, :class:`PluginVersionError` if the
        plugin exists only in other versions, :class:`~connect.internals.plugins.versions.VersionSpecError` if
        ``version`` is not a valid range, and another :class:`~connect.errors.PluginError` if no plugin or more than one
        has that name.
        """
        return self._chosen(kind, name, version, runs_here=self._home is not None)

    def find_connector(self, name: str, version: str | None = None, engine: str | None = None) -> PluginEntry:
        """Return the connector that a configuration calls ``name``; with ``engine=java`` the Java class of that name.

        Raises what :meth:`find` raises.
        """
        if engine is None or engine.strip().lower() != _JAVA:
            return self.find(PluginKind.CONNECTOR, name, version)
        found = self._java_class(PluginKind.CONNECTOR, name)
        if found is None:
            with suppress(PluginError):
                aliases = self.find(PluginKind.CONNECTOR, name).aliases
                found = next(filter(None, (self._java_class(PluginKind.CONNECTOR, alias) for alias in aliases)), None)
        if found is None:
            raise PluginError(
                f"engine=java needs a Java plugin, and no jar on plugin.path has a connector {name}. Put the "
                "folder with its jars into a folder of plugin.path and restart the worker, or remove "
                f"engine.{self._place}"
            )
        return self._newest(self._same(found), version)

    def java_counterpart(self, entry: PluginEntry) -> PluginEntry | None:
        """Return the newest Java plugin for which a plugin of Python stands; ``None`` if there is none here."""
        return next(filter(None, (self._java_class(entry.kind, alias) for alias in entry.aliases)), None)

    def _java_class(self, kind: PluginKind, name: str) -> PluginEntry | None:
        """Return an entry of the Java class that is called ``name``; ``None`` if there is none."""
        classes = {entry.class_name: entry for entry in self._java.named(kind, name)}
        if len(classes) > 1:
            raise _ambiguous(kind, name, classes)
        return next(iter(classes.values()), None)

    def _newest(self, same: Sequence[PluginEntry], version: str | None) -> PluginEntry:
        """Return the newest of these entries in the range; the version of a Java class may differ from its jar's, so
        that only the JVM knows that none is."""
        asked = VersionRange.parse(version)
        newest = sorted(same, key=lambda entry: Version(entry.version or UNDEFINED), reverse=True)
        fitting = (one for one in newest if asked is None or Version(one.version or UNDEFINED) in asked)
        return next(fitting, newest[0])

    def _chosen(self, kind: PluginKind, name: str, version: str | None, *, runs_here: bool) -> PluginEntry:
        """Return the newest entry in the range; with ``runs_here``, only entries that this interpreter can run."""
        entry, asked = self._found(kind, name), VersionRange.parse(version)
        if entry.java is not None:
            return self._newest(self._same(entry), version)
        same = sorted(self._same(entry), key=lambda entry: Version(entry.version or UNDEFINED), reverse=True)
        fitting = [one for one in same if asked is None or Version(one.version or UNDEFINED) in asked]
        if not fitting:
            available = [one.version or UNDEFINED for one in reversed(same)]
            raise PluginVersionError(
                f"Plugin {entry.class_name} not found that matches the version range {asked}, available versions: "
                f"[{', '.join(dict.fromkeys(available))}]",
                available,
            )
        if runs_here:
            fitting = [one for one in fitting if one.interpreter is None] or fitting
        return next((one for one in fitting if one.home == self._home), fitting[0])

    def _found(self, kind: PluginKind, name: str) -> PluginEntry:
        """Return an entry of the class that a configuration calls ``name``."""
        found = self._by_name.get((kind, name)) or self._by_name.get((kind, name.replace("$", ".")), [])
        classes = {entry.class_name: entry for entry in found}
        if len(classes) == 1:
            return next(iter(classes.values()))
        # A plugin's own name counts before those of the Java classes that others stand for.
        full = name if name.endswith(kind.suffix) else f"{name}{kind.suffix}"
        own = [entry for entry in classes.values() if {name, full} & {entry.simple_name, entry.class_name}]
        if len(own) == 1:
            return own[0]
        what = kind.value.replace("_", " ")
        if classes:
            raise _ambiguous(kind, name, classes)
        if (java := self._java_class(kind, name)) is not None:
            return java
        if _may_be_ours(name):
            return self._kept(kind, name.replace("$", "."))
        meant = self.suggestion(kind, name, " (did you mean {}?)")
        known = ", ".join(dict.fromkeys(entry.class_name for entry in self.entries(kind)))
        written = name if name == name.strip() else f"{name!r}, with the blanks around it"
        raise PluginError(
            f"Failed to find any class that implements {kind.suffix} and which name matches {written}"
            f"{meant or f', available {what}s are: {known}'}{self._skipped()}{self._place}"
            f"{self.interpreter_hint and '.'}{self.interpreter_hint}{_java_hint(name)}"
        )

    def _same(self, entry: PluginEntry) -> list[PluginEntry]:
        """Return all entries of the same class."""
        if entry.java is not None:
            return self._java.named(entry.kind, entry.class_name)
        listed = self._by_name.get((entry.kind, entry.class_name), [])
        return [one for one in listed if one.class_name == entry.class_name] or [entry]

    def suggestion(self, kind: PluginKind, name: str, form: str = " Did you mean {}?") -> str:
        """Return the names of plugins that resemble an unknown name, formatted with ``form``; empty if none do."""
        written, variant = _without_variant(PluginEntry(kind, name).simple_name.lower())
        suffix = kind.suffix.lower()
        is_whole = written.endswith(suffix)
        names: dict[str, PluginEntry] = {}
        for entry in self.entries(kind):
            for full in filter(_Comparable(kind, name), entry.names()):
                known, other = _without_variant(PluginEntry(kind, full).simple_name.lower())
                if variant and other and variant != other:
                    continue
                names[known.removesuffix(suffix)] = entry
                if not is_whole:
                    names[known] = entry
        # What all names of a kind end with makes none of them alike.
        written = written.removesuffix(suffix)
        cutoff = _LIKENESS_OF_VENDORS if _is_of_vendor(kind, name) else _LIKENESS
        close = get_close_matches(written, names, n=_MOST_SUGGESTED, cutoff=cutoff) if written else []
        close = [match for match in close if _likeness(written, match) > _likeness(written, close[0]) - _MARGIN]
        meant = dict.fromkeys(names[match] for match in close)
        # A plugin has several names; it is told by one such as was written.
        candidates = [
            max(filter(_Comparable(kind, name), entry.names()), key=lambda known: _likeness(name, known))
            for entry in meant
        ]
        return form.format(" or ".join(candidates)) if candidates else ""

    def load(self, kind: PluginKind, name: str, version: str | None = None) -> type[Any]:
        """Import the class that a configuration calls ``name``; see :meth:`find`. This runs the plugin's code.

        Raises :class:`~connect.errors.PluginError` if it cannot be imported or is not of that kind.
        """
        return load_class(self._chosen(kind, name, version, runs_here=True))

    def _skipped(self) -> str:
        return "".join(f". {broken}" for broken in (*self.broken, *self._java.broken))

    @property
    def java_is_listed(self) -> bool:
        """Whether the jars list all of Java's plugins, so that a JVM need not look at the classes."""
        return self._java.are_listed

    @property
    def broken_jars(self) -> tuple[BrokenPackage, ...]:
        """The jars and folders of ``plugin.path`` that cannot be read."""
        return self._java.broken

    def _unlisted(self, kind: PluginKind, path: str) -> PluginEntry:
        if not any(matches_wildcard(pattern, path) for pattern in self._allowed):
            raise UnlistedPluginError(
                f"Class {path} is not listed in any {_FILE} of this worker, and {_ALLOWLIST} does not allow it. List "
                "it in "
                f"the {_FILE} of a folder on plugin.path or of a package with an entry point in {ENTRY_POINTS}, or "
                f"add it to {_ALLOWLIST} in the worker's file.{self.suggestion(kind, path)}{self._place}"
            )
        try:
            inherited = ancestors(path)
        except PluginError as error:
            raise UnlistedPluginError(str(error)) from error
        if KIND_CLASSES[kind] not in inherited:
            raise UnlistedPluginError(
                f"According to its source, class {path} is not a {kind.suffix}. Use a class that inherits one, or list "
                f"this one in a {_FILE}."
            )
        return PluginEntry(kind, path, _type_of(kind, inherited))


def _packages_of_plugins() -> Sequence[importlib.metadata.EntryPoint]:
    """Return the entry points of installed packages with plugins; the packages are searched again after a change.

    An installation changes the folder that it is in, as importlib's own caches assume, but writes the package's files
    a moment later: what is found until then is not kept.
    """
    places = tuple((place, _changed_at(place)) for place in sys.path)
    if time.time() - max((changed for _, changed in places), default=0.0) < _SETTLED_SECONDS:
        return _search(())
    return _kept_search(places)


def _search(_places: tuple[tuple[str, float], ...]) -> Sequence[importlib.metadata.EntryPoint]:
    return tuple(importlib.metadata.entry_points(group=ENTRY_POINTS))


_kept_search: Final = lru_cache(maxsize=1)(_search)


@lru_cache(maxsize=_KEPT_INDEXES)
def _by_name(entries: tuple[PluginEntry, ...]) -> Mapping[tuple[PluginKind, str], Sequence[PluginEntry]]:
    """Return the plugins by kind and name, once for all units of a process."""
    found: dict[tuple[PluginKind, str], list[PluginEntry]] = defaultdict(list)
    for entry in entries:
        for name in set(entry.names()):
            found[entry.kind, name].append(entry)
    return dict(found)


def _changed_at(place: str) -> float:
    try:
        return Path(place).stat().st_mtime
    except OSError:
        return 0.0


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return "" if point.dist is None else f" in {point.dist.name} {point.dist.version}"


def _without_variant(name: str) -> tuple[str, str]:
    """Return a simple name without the variant of a transformation, which makes no two of them alike, and that."""
    whole, _, variant = name.rpartition("$")
    meant = get_close_matches(variant, _VARIANTS, n=1, cutoff=_LIKENESS) if whole else []
    return (whole, meant[0]) if meant else (name, "")


@dataclass(frozen=True, slots=True)
class _Comparable:
    """Whether a known name may be what was meant by ``written``.

    Transformations of different vendors do different things under one name, so a Java class of one is compared with
    those of its vendor only.
    """

    kind: PluginKind
    written: str

    def __call__(self, known: str) -> bool:
        if not _is_of_vendor(self.kind, self.written):
            return True
        return known.split(".")[:2] == self.written.split(".")[:2]


def _is_of_vendor(kind: PluginKind, name: str) -> bool:
    return kind in _OF_VENDORS and _JAVA_CLASS.match(name) is not None


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _java_hint(name: str) -> str:
    """Return advice about an unknown Java class, if ``name`` looks like one."""
    if not _JAVA_CLASS.match(name):
        return ""
    return (
        f". If {name.rpartition('.')[2]} is a Java plugin, put the folder with its jars into a folder of plugin.path "
        "and restart the worker"
    )


def _ambiguous(kind: PluginKind, name: str, classes: Iterable[str]) -> PluginError:
    return PluginError(
        f"More than one {kind.value.replace('_', ' ')} matches alias {name}. Please use full package and class name "
        f"instead. Classes found: {', '.join(sorted(classes))}"
    )


def _may_be_ours(name: str) -> bool:
    # io.debezium.connector.X is the name of a Java class, and nothing of Python's module io.
    return "." in name and name.partition(".")[0] not in sys.stdlib_module_names and is_importable(name)


def _type_of(kind: PluginKind, inherited: Collection[str]) -> str | None:
    """Return whether a connector is a source or a sink, if that is known before it is imported."""
    if kind is not PluginKind.CONNECTOR:
        return None
    return next((type_name for type_name, path in _TYPE_CLASSES.items() if path in inherited), None)


_TYPE_CLASSES: Final = {"source": "connect.source.SourceConnector", "sink": "connect.sink.SinkConnector"}
