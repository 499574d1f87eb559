"""Where the plugins of a unit or inquiry are installed: its interpreter, and the units that may share its process.

A process keeps the modules that it has imported, so a unit that needs newer code needs another process.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path
from typing import Final

from connect.errors import PluginError
from connect.internals.chain.specs import VERSION, predicate_specs, transformation_specs
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry
from worker.messages import messages
from worker.messages.messages import Command

__all__ = ["JAVA", "PluginHomes", "code_state", "comes_with_sluice"]

JAVA: Final = "java"
"""What the home of units begins with that run in a JVM."""

_CONNECTOR: Final = "connector.class"
_ENGINE: Final = "engine"
_ROLES: Final = (
    ("key", PluginKind.CONVERTER),
    ("value", PluginKind.CONVERTER),
    ("header", PluginKind.HEADER_CONVERTER),
)

_OURS: Final = frozenset({"connect", "connectors", "converters"})
_MODULES: Final = "*.py"
_INSTALLED: Final = "lib/python*/site-packages"


@dataclass(frozen=True, slots=True)
class PluginHomes:
    """Finds out where the plugins of a command are installed, without importing them."""

    registry: PluginRegistry

    def interpreter(self, command: Command) -> Path | None:
        """Return the interpreter that the process needs; ``None`` is the worker's own.

        It is the worker's for a plugin that cannot be found: the process that looks for the plugin reports the error.
        """
        connector = self._connector(command)
        return None if connector is None else connector.interpreter

    def home(self, command: Command) -> str:
        """Return what units that share a process must have in common; an empty text if all their plugins come with
        Sluice.

        It is an interpreter, or the folders and packages of plugins with the state of their code: in one process,
        modules of one folder would hide those of another, and older code newer. So plugins of two authors share none.
        """
        connector = self._connector(command)
        if connector is None:
            return ""
        if connector.java is not None:
            return f"{JAVA}@{self._jars_state()}"
        if connector.interpreter is not None:
            return f"{connector.interpreter}@{code_state(connector)}"
        apart = {entry.home: entry for entry in self._entries(connector, command) if self._is_apart(entry)}
        return ",".join(f"{home}@{code_state(entry)}" for home, entry in sorted(apart.items()))

    def _is_apart(self, entry: PluginEntry) -> bool:
        return not comes_with_sluice(entry) or len(self.registry.versions(entry)) > 1

    def _connector(self, command: Command) -> PluginEntry | None:
        match command:
            case messages.DescribePlugin(kind, name, version):
                return self._found(self.registry, PluginKind(kind), name, version)
            case _:
                config = _config(command)
                return self._found_connector(config)

    def _entries(self, connector: PluginEntry, command: Command) -> Iterator[PluginEntry]:
        """Yield the connector and the plugins of its chain, as far as they can be found."""
        yield connector
        beside, config, worker = self.registry.beside(connector), _config(command), getattr(command, "worker", {})
        named: list[tuple[PluginKind, str | None, str | None]] = []
        for role, kind in _ROLES:
            props = config if config.get(f"{role}.converter") else worker
            named.append((kind, props.get(f"{role}.converter"), props.get(f"{role}.converter.{VERSION}")))
        named += [(PluginKind.TRANSFORMATION, spec.type, spec.version) for spec in transformation_specs(config)]
        named += [(PluginKind.PREDICATE, spec.type, spec.version) for spec in predicate_specs(config)]
        for kind, name, version in named:
            if (entry := self._found(beside, kind, name, version)) is not None:
                yield entry

    def _found_connector(self, config: Mapping[str, str]) -> PluginEntry | None:
        if not (name := config.get(_CONNECTOR)):
            return None
        with contextlib.suppress(PluginError):
            return self.registry.find_connector(name.strip(), config.get(f"connector.{VERSION}"), config.get(_ENGINE))
        return None

    def _jars_state(self) -> str:
        """Return a text that changes with the jars of Java plugins: all of them are in one JVM, each by itself."""
        state = hashlib.blake2b(digest_size=8)
        folders = {entry.java.parent for entry in self.registry.entries() if entry.java is not None}
        for jar in sorted(file for folder in folders for file in folder.glob("*.jar")):
            state.update(f"{jar} {_written(jar)}\n".encode())
        return state.hexdigest()

    def _found(
        self, registry: PluginRegistry, kind: PluginKind, name: str | None, version: str | None
    ) -> PluginEntry | None:
        try:
            return registry.find(kind, name.strip(), version) if name else None
        except PluginError:
            return None


def _config(command: Command) -> Mapping[str, str]:
    """Return the configuration of the connector that a command is about; empty if it is about none."""
    config = command.connector_config if isinstance(command, messages.RunTask) else getattr(command, "config", None)
    return {key: value for key, value in (config or {}).items() if value is not None}


def comes_with_sluice(entry: PluginEntry) -> bool:
    """Return whether a plugin comes with Sluice."""
    return entry.folder is None and entry.interpreter is None and _top(entry) in _OURS


def code_state(entry: PluginEntry) -> str:
    """Return a text that changes with the code of a plugin, found without importing it.

    It covers the modules of the plugin's folder or package, or the packages that its own interpreter has installed.
    """
    if comes_with_sluice(entry):
        return ""
    state = hashlib.blake2b(digest_size=8)
    for file in sorted(_files(entry)):
        state.update(f"{file} {_written(file)}\n".encode())
    return state.hexdigest()


def _files(entry: PluginEntry) -> Iterator[Path]:
    if entry.interpreter is not None:
        yield from entry.interpreter.parents[1].glob(_INSTALLED)
    if entry.folder is not None:
        yield from entry.folder.glob(_MODULES)
        yield from (entry.folder / _top(entry)).rglob(_MODULES)
    elif entry.interpreter is None and (spec := _spec(_top(entry))) is not None:
        folders = map(Path, spec.submodule_search_locations or ())
        found = chain.from_iterable(folder.rglob(_MODULES) for folder in folders)
        yield from found if spec.submodule_search_locations else [Path(spec.origin or "")]


def _spec(package: str) -> ModuleSpec | None:
    with contextlib.suppress(ImportError, ValueError):
        return importlib.util.find_spec(package)
    return None


def _written(file: Path) -> tuple[int, ...]:
    """Return the identity of a file and its times, including the one at which it was put in place, which cannot
    be set.
    """
    try:
        found = file.stat()
    except OSError:
        return ()  # It was removed just now.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _top(entry: PluginEntry) -> str:
    return entry.class_name.partition(".")[0]
