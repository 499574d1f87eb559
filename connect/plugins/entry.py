"""A plugin as ``plugins.toml`` lists it, and the kinds there are."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["UNDEFINED", "PluginEntry", "PluginKind", "class_name"]

UNDEFINED: Final = "undefined"
"""The version of a plugin that does not say which it is."""


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


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """One plugin, as ``plugins.toml`` lists it.

    ``type`` is ``source`` or ``sink`` for connectors and ``None`` for others; ``folder`` is where its modules
    are, if that is not on the import path already. There may be several versions of one class, each in a folder of its
    own. ``task_aliases`` are the Java classes of the tasks of those
    connectors that ``aliases`` names, where they are not named after them. ``interpreter`` is the one that alone can
    run the plugin, where that is not the one of this process.
    """

    kind: PluginKind
    class_name: str
    type: str | None = None
    aliases: tuple[str, ...] = ()
    version: str | None = None
    folder: Path | None = None
    task_aliases: tuple[str, ...] = ()
    interpreter: Path | None = None

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
    def home(self) -> str:
        """The place of its modules: a folder, or an installed package."""
        return str(self.folder) if self.folder is not None else self.class_name.partition(".")[0]

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


def class_name(plugin: object) -> str:
    """The dotted path of a plugin's class."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return f"{kind.__module__}.{kind.__qualname__}"
