"""The registry of plugins: which there are and under which names, without importing any of them.

Plugins are listed in files called ``plugins.toml``: the one that comes with Sluice, one in each folder of
``plugin.path`` (or in folders directly below it), and one in each package that the entry point group
``sluice.plugins`` names. A class that none of them lists is a plugin only where the worker's file allows it
(``plugin.import.allowlist``): a configuration may come from anybody, and to import a module is to run it. A class is
imported when :meth:`PluginRegistry.load` is asked for it, which only child processes do (invariant I7).

A package or folder whose plugins cannot be listed is skipped and kept among the :attr:`PluginRegistry.broken`: one
mistake of one author does not take the plugins of all others away.
"""

from __future__ import annotations

import enum
import importlib
import importlib.metadata
import importlib.util
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from connect.class_outline import ancestors, is_importable
from connect.config.validators import matches_wildcard
from connect.errors import PluginError

__all__ = [
    "BrokenPackage",
    "PluginEntry",
    "PluginKind",
    "PluginRegistry",
    "UnlistedPluginError",
    "built_in_file",
    "class_name",
]

_ENTRY_POINTS: Final = "sluice.plugins"
_ALLOWLIST: Final = "plugin.import.allowlist"
_LIKENESS: Final = 0.75
_MARGIN: Final = 0.08
_MOST_SUGGESTED: Final = 3
_NOT_HERE: Final = (
    "Worker {} has no such plugin: if others of its cluster have it, install it there too, since every worker may have "
    "to run every connector"
)
_FILE: Final = "plugins.toml"
_KEPT: Final = 1024


class PluginKind(enum.Enum):
    """The kinds of plugin; the value of each is the name of its tables in ``plugins.toml``."""

    CONNECTOR = "connector"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONFIG_PROVIDER = "config_provider"
    ENGINE = "engine"

    @property
    def suffix(self) -> str:
        """The part that may be left out at the end of a simple name."""
        return "".join(part.capitalize() for part in self.value.split("_"))


class UnlistedPluginError(PluginError):
    """A class that no ``plugins.toml`` lists is not allowed, or is not of the kind it was named for."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin, as ``plugins.toml`` lists it.

    ``type`` is ``source`` or ``sink`` for connectors and ``None`` for others; ``folder`` is where its modules
    are, if that is not on the import path already. ``task_aliases`` are the Java classes of the tasks of those
    connectors that ``aliases`` names, where they are not named after them.
    """

    kind: PluginKind
    class_name: str
    type: str | None = None
    aliases: tuple[str, ...] = ()
    version: str | None = None
    folder: Path | None = None
    task_aliases: tuple[str, ...] = ()

    def java_task(self, connector: str) -> str | None:
        """The Java class of the tasks of ``connector``, one of the aliases, or else of the first of them."""
        if not self.aliases:
            return None
        alias = connector if connector in self.aliases else self.aliases[0]
        if self.task_aliases:
            return self.task_aliases[self.aliases.index(alias)]
        suffix = self.kind.suffix
        return f"{alias.removesuffix(suffix)}Task" if alias.endswith(suffix) else None

    @property
    def simple_name(self) -> str:
        """The class name without its module, nested classes joined by ``$`` as in Java."""
        parts = self.class_name.split(".")
        first = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
        return "$".join(parts[first:])

    def names(self) -> Iterator[str]:
        """Every name under which a config may call this plugin."""
        yield self.class_name
        for name in (self.simple_name, *self.aliases):
            yield name
            if name.endswith(self.kind.suffix) and name not in self.aliases:
                yield name.removesuffix(self.kind.suffix)
        for alias in self.aliases:
            simple = alias.rpartition(".")[2]
            yield simple
            yield simple.removesuffix(self.kind.suffix)


@dataclass(frozen=True, slots=True)
class BrokenPackage:
    """A package or folder of plugins that is skipped: its name as its user knows it, and what is wrong with it."""

    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.name} is skipped: {self.error}"


class PluginRegistry:
    """Finds plugins by their names. It does not change once it is made, so threads may share it."""

    def __init__(
        self,
        entries: Iterable[PluginEntry],
        allowed: Iterable[str] = (),
        broken: Iterable[BrokenPackage] = (),
        worker: str | None = None,
    ) -> None:
        """``allowed`` are patterns of dotted paths that may be loaded though no file lists them; ``*`` is any text.

        ``worker`` names the one of several workers that these plugins are on.
        """
        self._entries = tuple(entries)
        self.broken = tuple(broken)
        self._place = f". {_NOT_HERE.format(worker)}" if worker else ""
        self._allowed = tuple(written.strip().replace("$", ".") for written in allowed)
        # A source is read once and not for every status that shows the type of a connector.
        self._kept = lru_cache(maxsize=_KEPT)(self._unlisted)
        self._by_name: dict[tuple[PluginKind, str], list[PluginEntry]] = defaultdict(list)
        for entry in self._entries:
            for name in set(entry.names()):
                self._by_name[entry.kind, name].append(entry)

    @classmethod
    def discover(
        cls, plugin_path: Sequence[str | Path] = (), allowed: Iterable[str] = (), worker: str | None = None
    ) -> PluginRegistry:
        """Read every ``plugins.toml`` there is; packages and folders that are wrong are skipped.

        Raises :class:`~connect.errors.PluginError` if ``plugin_path`` names no folder.
        """
        entries = [*read_entries(built_in_file(), folder=None)]
        broken: list[BrokenPackage] = []
        for point in importlib.metadata.entry_points(group=_ENTRY_POINTS):
            try:
                entries += _entries_of_package(point.value)
            except PluginError as error:
                name = f"Package {point.value} (entry point {point.name} of {_ENTRY_POINTS}{_distribution(point)})"
                broken.append(BrokenPackage(name, str(error)))
        for path in plugin_path:
            folder = Path(path)
            if not folder.is_dir():
                raise PluginError(f"plugin.path names {folder}, which is not a folder; correct or remove it.")
            for place in (folder, *sorted(child for child in folder.iterdir() if child.is_dir())):
                try:
                    entries += _entries_of_folder(place)
                except PluginError as error:
                    broken.append(BrokenPackage(f"Folder {place}", str(error)))
        return cls(entries, allowed, broken, worker)

    def entries(self, kind: PluginKind | None = None) -> tuple[PluginEntry, ...]:
        """All plugins, or those of one kind, in the order of their class names."""
        chosen = (entry for entry in self._entries if kind is None or entry.kind is kind)
        return tuple(sorted(chosen, key=lambda entry: entry.class_name))

    def find(self, kind: PluginKind, name: str) -> PluginEntry:
        """The plugin that a config calls ``name``.

        A dotted path that no file lists must be allowed, and its source say that it is of that kind: nothing is
        imported to find out. Raises :class:`UnlistedPluginError` if not, and another
        :class:`~connect.errors.PluginError` when nothing has that name, or more than one plugin has.
        """
        found = self._by_name.get((kind, name)) or self._by_name.get((kind, name.replace("$", ".")), [])
        classes = {entry.class_name: entry for entry in found}
        if len(classes) == 1:
            return next(iter(classes.values()))
        what = kind.value.replace("_", " ")
        if classes:
            raise PluginError(
                f"More than one {what} matches alias {name}. Please use full package and class name instead. "
                f"Classes found: {', '.join(sorted(classes))}"
            )
        if _may_be_ours(name):
            return self._kept(kind, name.replace("$", "."))
        known = ", ".join(entry.class_name for entry in self.entries(kind))
        raise PluginError(
            f"Failed to find any class that implements {kind.suffix} and which name matches {name}"
            f"{self.suggestion(kind, name, ' (did you mean {}?)')}, "
            f"available {what}s are: {known}{self._skipped()}{self._place}"
        )

    def suggestion(self, kind: PluginKind, name: str, form: str = " Did you mean {}?") -> str:
        """The names of plugins that resemble a name which none has, put into ``form``; nothing if none does."""
        written, suffix = PluginEntry(kind, name).simple_name.lower(), kind.suffix.lower()
        is_whole = written.endswith(suffix)
        names: dict[str, PluginEntry] = {}
        for entry in self.entries(kind):
            for known in (PluginEntry(kind, known).simple_name.lower() for known in entry.names()):
                names[known.removesuffix(suffix)] = entry
                if not is_whole:
                    names[known] = entry
        # What all names of a kind end with makes none of them alike.
        written = written.removesuffix(suffix)
        close = get_close_matches(written, names, n=_MOST_SUGGESTED, cutoff=_LIKENESS) if written else []
        close = [match for match in close if _likeness(written, match) > _likeness(written, close[0]) - _MARGIN]
        meant = dict.fromkeys(names[match] for match in close)
        # A plugin has several names; it is told by one such as was written.
        told = [max(entry.names(), key=lambda known: _likeness(name, known)) for entry in meant]
        return form.format(" or ".join(told)) if told else ""

    def load(self, kind: PluginKind, name: str) -> type[Any]:
        """Import the class that a config calls ``name``. This runs the plugin's code.

        Raises :class:`~connect.errors.PluginError` when it cannot be imported or is not of that kind.
        """
        return load_class(self.find(kind, name))

    def _skipped(self) -> str:
        return "".join(f". {broken}" for broken in self.broken)

    def _unlisted(self, kind: PluginKind, path: str) -> PluginEntry:
        if not any(matches_wildcard(pattern, path) for pattern in self._allowed):
            raise UnlistedPluginError(
                f"Class {path} is listed by no {_FILE} of this worker, and {_ALLOWLIST} does not allow it. List it in "
                f"the {_FILE} of a folder on plugin.path or of a package with an entry point in {_ENTRY_POINTS}, or "
                f"add it to {_ALLOWLIST} in the worker's file.{self.suggestion(kind, path)}{self._place}"
            )
        try:
            inherited = ancestors(path)
        except PluginError as error:
            raise UnlistedPluginError(str(error)) from error
        if _KIND_CLASSES[kind] not in inherited:
            raise UnlistedPluginError(
                f"Class {path} is not a {kind.suffix} as far as its source says. Name a class that inherits one, or "
                f"list this one in a {_FILE}."
            )
        return PluginEntry(kind, path, _type_of(kind, inherited))


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def class_name(plugin: object) -> str:
    """The dotted path of a plugin's class."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"


def load_class(entry: PluginEntry) -> type[Any]:
    """Import the class of ``entry``, from its folder if it has one."""
    if entry.folder is not None and str(entry.folder) not in sys.path:
        sys.path.insert(0, str(entry.folder))
    loaded = _import(entry.class_name)
    _check_origin(entry, loaded)
    kind_class = _kind_class(entry.kind)
    if not (isinstance(loaded, type) and issubclass(loaded, kind_class)):
        raise PluginError(f"Class {entry.class_name} is not a {kind_class.__name__}; name a class that is.")
    return loaded


def _check_origin(entry: PluginEntry, loaded: object) -> None:
    """All plugins of a process share one import path, so that two modules of one name hide each other."""
    file = getattr(sys.modules.get(getattr(loaded, "__module__", "")), "__file__", None)
    if entry.folder is None or file is None or Path(file).resolve().is_relative_to(entry.folder.resolve()):
        return
    top = entry.class_name.partition(".")[0]
    if any((entry.folder / name).exists() for name in (top, f"{top}.py")):
        raise PluginError(
            f"Class {entry.class_name} of {entry.folder} is hidden by {file}: rename its module {top}, which must be "
            "unique among all plugins."
        )


def read_entries(file: Path, *, folder: Path | None) -> list[PluginEntry]:
    """The plugins that a ``plugins.toml`` lists; :class:`~connect.errors.PluginError` if it is not of its form."""
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise PluginError(f"{file} cannot be read as TOML: {error}") from error
    entries: list[PluginEntry] = []
    for name, tables in document.items():
        try:
            kind = PluginKind(name)
        except ValueError as error:
            kinds = ", ".join(kind.value for kind in PluginKind)
            raise PluginError(f"{file}: [[{name}]] is not a kind of plugin; the kinds are {kinds}.") from error
        if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
            raise PluginError(f"{file}: {name} is not a list of tables; write [[{name}]] before each plugin.")
        entries += [_entry(file, kind, table, folder) for table in tables]
    return entries


def _entry(file: Path, kind: PluginKind, table: Mapping[str, Any], folder: Path | None) -> PluginEntry:
    known = ["class", "type", "aliases", "version", *(["task_aliases"] if kind is PluginKind.CONNECTOR else [])]
    unknown = table.keys() - set(known)
    if unknown or not isinstance(table.get("class"), str):
        wrong = f"unknown key {min(unknown)}" if unknown else "no class"
        takes = f"{', '.join(known[:-1])} and {known[-1]}"
        raise PluginError(f"{file}: a [[{kind.value}]] has {wrong}; it takes {takes}.")
    if kind is PluginKind.CONNECTOR and table.get("type") not in ("source", "sink"):
        raise PluginError(f'{file}: connector {table["class"]} needs type = "source" or type = "sink".')
    aliases, tasks = _names(file, table, "aliases"), _names(file, table, "task_aliases")
    if tasks and len(tasks) != len(aliases):
        raise PluginError(
            f"{file}: {table['class']} has {len(aliases)} aliases and {len(tasks)} task_aliases; give one for each."
        )
    return PluginEntry(kind, table["class"], table.get("type"), aliases, table.get("version"), folder, tasks)


def _names(file: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = table.get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise PluginError(f"{file}: the {key} of {table['class']} are not a list of strings; write {key} = [...].")
    return tuple(names)


def built_in_file() -> Path:
    """The ``plugins.toml`` that comes with Sluice."""
    package = Path(__file__).parent
    shipped = package / _FILE
    return shipped if shipped.is_file() else package.parent / _FILE


def _entries_of_package(package: str) -> list[PluginEntry]:
    top, *below = package.split(".")
    try:
        # A top-level package is located without running any of its code.
        spec = importlib.util.find_spec(top)
    except Exception as error:
        raise PluginError(f"Its package {top} cannot be located: {error}. Install it again.") from error
    if spec is None:
        raise PluginError(f"There is no package {top}. Install it again, or correct its entry point.")
    if not spec.submodule_search_locations:
        raise PluginError(
            f"{top} is a module and no package, so it cannot hold {_FILE}. Make a folder {top} of it, with an "
            f"__init__.py and {_FILE}, and install it again."
        )
    places = [Path(location, *below) for location in spec.submodule_search_locations]
    file = next((place / _FILE for place in places if (place / _FILE).is_file()), None)
    if file is None:
        raise PluginError(
            f"There is no {places[0] / _FILE}. Write one, and have it packed with the package: setuptools needs "
            f'[tool.setuptools.package-data] "{package}" = ["{_FILE}"] in pyproject.toml. Then install it again.'
        )
    return read_entries(file, folder=None)


def _entries_of_folder(folder: Path) -> list[PluginEntry]:
    try:
        listed = (folder / _FILE).is_file()
    except OSError as error:
        raise PluginError(f"It cannot be read: {error.strerror}. Let the user of this process read it.") from error
    return read_entries(folder / _FILE, folder=folder) if listed else []


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return "" if point.dist is None else f" in {point.dist.name} {point.dist.version}"


def _may_be_ours(name: str) -> bool:
    # io.debezium.connector.X is the name of a Java class, and nothing of Python's module io.
    return "." in name and name.partition(".")[0] not in sys.stdlib_module_names and is_importable(name)


def _import(path: str) -> object:
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:length])
        try:
            target: object = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
                continue
            raise PluginError(f"Class {path} needs the module {error.name}, which is not installed.") from error
        except Exception as error:
            raise PluginError(f"Class {path} cannot be imported: {error}") from error
        try:
            for part in parts[length:]:
                target = getattr(target, part)
        except AttributeError as error:
            raise PluginError(f"Class {path} cannot be imported: {error}") from error
        return target
    raise PluginError(f"Class {path} cannot be imported: there is no module {parts[0]}.")


def _kind_class(kind: PluginKind) -> type[Any]:
    module, _, name = _KIND_CLASSES[kind].rpartition(".")
    loaded: type[Any] = getattr(importlib.import_module(module), name)
    return loaded


def _type_of(kind: PluginKind, inherited: Collection[str]) -> str | None:
    """Whether a connector is a source or a sink, or neither, which it does not say until it is imported."""
    if kind is not PluginKind.CONNECTOR:
        return None
    return next((type_name for type_name, path in _TYPE_CLASSES.items() if path in inherited), None)


_KIND_CLASSES: Final = {
    PluginKind.CONNECTOR: "connect.connector.Connector",
    PluginKind.CONVERTER: "connect.converter.Converter",
    PluginKind.HEADER_CONVERTER: "connect.converter.HeaderConverter",
    PluginKind.TRANSFORMATION: "connect.transformation.Transformation",
    PluginKind.PREDICATE: "connect.transformation.Predicate",
    PluginKind.CONFIG_PROVIDER: "connect.providers.provider.ConfigProvider",
    PluginKind.ENGINE: "connect.connector.Task",
}
_TYPE_CLASSES: Final = {"source": "connect.source.SourceConnector", "sink": "connect.sink.SinkConnector"}
