"""``plugins.toml`` files: the one that comes with Sluice, and those of folders and packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from connect.errors import PluginError
from connect.internals.plugins.class_outline import declared_version
from connect.internals.plugins.entry import PluginEntry, PluginKind

__all__ = [
    "BrokenPackage",
    "built_in_entries",
    "built_in_file",
    "entries_of_folder",
    "entries_of_package",
    "read_entries",
]

_FILE: Final = "plugins.toml"


@dataclass(frozen=True, slots=True)
class BrokenPackage:
    """A package or folder of plugins that is skipped: its name as users know it, and the reason."""

    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.name} is skipped: {self.error}"


def read_entries(
    file: Path, *, folder: Path | None, version: str | None = None, modules: Path | None = None
) -> list[PluginEntry]:
    """Return the plugins listed in a ``plugins.toml``; raise :class:`~connect.errors.PluginError` if it is malformed.

    The version of a plugin is the first found of: its entry in the file, the file's version for all entries, the
    version declared in its class, ``version``. The sources of the classes are in ``modules``, in ``folder``, or on the
    import path.
    """
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except (OSError, ValueError) as error:
        raise PluginError(f"{file} cannot be read as TOML: {error}") from error
    of_all = document.pop("version", None)
    if not isinstance(of_all, str | None):
        raise PluginError(f'{file}: the version {of_all!r} is not text; write version = "{of_all}".')
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
    if of_all is not None:
        return [entry if entry.version else replace(entry, version=of_all) for entry in entries]
    return [
        entry if entry.version else replace(entry, version=_own_version(entry, modules or folder) or version)
        for entry in entries
    ]


def _entry(file: Path, kind: PluginKind, table: Mapping[str, Any], folder: Path | None) -> PluginEntry:
    known = [
        "class",
        "type",
        "aliases",
        "version",
        *(["task_aliases", "spark_class"] if kind is PluginKind.CONNECTOR else []),
    ]
    unknown = table.keys() - set(known)
    if unknown or not isinstance(table.get("class"), str):
        wrong = f"unknown key {min(unknown)}" if unknown else "no class"
        takes = f"{', '.join(known[:-1])} and {known[-1]}"
        raise PluginError(f"{file}: a [[{kind.value}]] has {wrong}; it takes {takes}.")
    if kind is PluginKind.CONNECTOR and table.get("type") not in ("source", "sink"):
        raise PluginError(f'{file}: connector {table["class"]} needs type = "source" or type = "sink".')
    if not isinstance(version := table.get("version"), str | None):
        raise PluginError(
            f'{file}: the version of {table["class"]}  is {version!r}, which is not text; write version = "{version}".'
        )
    aliases, tasks = _names(file, table, "aliases"), _names(file, table, "task_aliases")
    if tasks and len(tasks) != len(aliases):
        raise PluginError(
            f"{file}: {table['class']} has {len(aliases)} aliases but {len(tasks)} task_aliases; give one for each "
            "alias."
        )
    if not isinstance(spark := table.get("spark_class"), str | None):
        raise PluginError(f"{file}: the spark_class of {table['class']} is {spark!r}, which is no dotted path.")
    return PluginEntry(kind, table["class"], table.get("type"), aliases, version, folder, tasks, spark_class=spark)


def _own_version(entry: PluginEntry, modules: Path | None) -> str | None:
    """Return the version in the source of its class; errors in that source are left to the import."""
    try:
        return declared_version(entry.class_name, modules)
    except PluginError:
        return None


def _names(file: Path, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    names = table.get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise PluginError(f"{file}: the {key} of {table['class']} must be a list of strings; write {key} = [...].")
    return tuple(names)


def built_in_file() -> Path:
    """Return the path of the ``plugins.toml`` that comes with Sluice."""
    package = Path(__file__).parents[2]
    shipped = package / _FILE
    return shipped if shipped.is_file() else package.parent / _FILE


@cache
def built_in_entries() -> tuple[PluginEntry, ...]:
    """Return the plugins that come with Sluice, which are read once in a process and those forked from it."""
    return tuple(read_entries(built_in_file(), folder=None))


def entries_of_package(package: str, version: str | None) -> list[PluginEntry]:
    """Return the plugins of an installed package; raise :class:`~connect.errors.PluginError` if it is unusable."""
    top, *below = package.split(".")
    try:
        # A top-level package is located without running any of its code.
        spec = importlib.util.find_spec(top)
    except Exception as error:
        raise PluginError(f"Its package {top} cannot be located: {error}. Install it again.") from error
    if spec is None:
        raise PluginError(f"The package {top} does not exist. Install it again, or correct its entry point.")
    if not spec.submodule_search_locations:
        raise PluginError(
            f"{top} is a module, which cannot contain {_FILE}. Turn it into a folder {top} with an __init__.py and "
            f"{_FILE}, and install it again."
        )
    places = [Path(location, *below) for location in spec.submodule_search_locations]
    file = next((place / _FILE for place in places if (place / _FILE).is_file()), None)
    if file is None:
        raise PluginError(
            f"There is no {places[0] / _FILE}. Write one and include it in the package: setuptools needs "
            f'[tool.setuptools.package-data] "{package}" = ["{_FILE}"] in pyproject.toml. Then install it again.'
        )
    return read_entries(file, folder=None, version=version)


def entries_of_folder(folder: Path) -> list[PluginEntry]:
    """Return the plugins listed in a folder's ``plugins.toml``; none if it has no such file."""
    try:
        listed = (folder / _FILE).is_file()
    except OSError as error:
        raise PluginError(
            f"It cannot be read: {error.strerror}. Make it readable for the user of this process."
        ) from error
    return read_entries(folder / _FILE, folder=folder, version=_version_in(folder)) if listed else []


def _version_in(folder: Path) -> str | None:
    """Return the version of the only package that pip installed in a folder, as with ``--no-deps --target``."""
    versions = [found.version for found in importlib.metadata.distributions(path=[str(folder)])]
    return versions[0] if len(versions) == 1 else None
