"""Plugin entries as listed in ``plugins.toml``, and the kinds of plugin."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["UNDEFINED", "PluginEntry", "PluginKind", "class_name"]

UNDEFINED: Final = "undefined"
"""The version of a plugin that does not say which it is."""

_JAVA: Final = "java"


class PluginKind(enum.Enum):
    """The kinds of plugin. The value of each is the name of its tables in ``plugins.toml``."""

    CONNECTOR = "connector"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONFIG_PROVIDER = "config_provider"
    ENGINE = "engine"

    @property
    def suffix(self) -> str:
        """The suffix that may be omitted from a simple name."""
        return "".join(part.capitalize() for part in self.value.split("_"))


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin as listed in ``plugins.toml``.

    ``type`` is ``source`` or ``sink`` for connectors and ``None`` for others. ``folder`` contains its modules if they
    are not already on the import path; several versions of a class may exist, each in a folder of its own.
    ``task_aliases`` are the Java task classes of the connectors in ``aliases``, if not named after them.
    ``interpreter`` is the interpreter that must run the plugin, if not that of this process. ``spark_class`` is the
    connector that takes the place of this one with ``engine=spark``, if another does the same by Spark's own means.
    ``java`` is the jar that lists the plugin, if it is one of Java's.
    """

    kind: PluginKind
    class_name: str
    type: str | None = None
    aliases: tuple[str, ...] = ()
    version: str | None = None
    folder: Path | None = None
    task_aliases: tuple[str, ...] = ()
    interpreter: Path | None = None
    spark_class: str | None = None
    java: Path | None = None

    def java_task(self, connector: str) -> str | None:
        """Return the Java task class of ``connector``, one of the aliases, or else that of the first alias."""
        if not self.aliases:
            return None
        alias = connector if connector in self.aliases else self.aliases[0]
        if self.task_aliases:
            return self.task_aliases[self.aliases.index(alias)]
        suffix = self.kind.suffix
        return f"{alias.removesuffix(suffix)}Task" if alias.endswith(suffix) else None

    @property
    def home(self) -> str:
        """The location of its modules: a folder, an installed package, or the JVM with its own class loaders."""
        if self.java is not None:
            return _JAVA
        return str(self.folder) if self.folder is not None else self.class_name.partition(".")[0]

    @property
    def simple_name(self) -> str:
        """The class name without its module, with nested classes joined by ``$`` as in Java."""
        parts = self.class_name.split(".")
        first = next((index for index, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
        return "$".join(parts[first:])

    def names(self) -> Iterator[str]:
        """Yield all names by which a configuration, or the file of roles, may refer to this plugin."""
        yield self.class_name
        for name in (self.simple_name, *self.aliases):
            yield name
            if name.endswith(self.kind.suffix) and name not in self.aliases:
                yield name.removesuffix(self.kind.suffix)
        for alias in self.aliases:
            simple = alias.rpartition(".")[2]
            yield simple
            yield simple.removesuffix(self.kind.suffix)


def class_name(plugin: object) -> str:
    """Return the dotted path of a plugin's class."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"
