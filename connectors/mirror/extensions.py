"""Loads the classes that a configuration names: replication policies and filters, ours and those of other packages."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from connect.errors import ConfigError, PluginError

__all__ = ["GROUP", "extension_class"]

GROUP: Final = "sluice.mirror"
"""The group of entry points through which a package offers policies and filters."""

T = TypeVar("T")


def extension_class(key: str, name: str, base: type[T], own: Mapping[str, type[T]]) -> type[T]:
    """Return the class that ``key`` names: one of our ``own``, by Java's name or its last part, or an entry point.

    An entry point is named by its name or by the dotted path of its class. No other module is imported, whatever a
    configuration says. Raises :class:`~connect.errors.ConfigError` if there is no such class.
    """
    for written, known in own.items():
        if name in {written, written.rpartition(".")[2], f"{known.__module__}.{known.__qualname__}"}:
            return known
    for point in importlib.metadata.entry_points(group=GROUP):
        if name in {point.name, point.value.replace(":", ".")}:
            return _loaded(key, name, base, point)
    known_names = ", ".join(own)
    reason = f"Class {name} could not be found. Use {known_names}, or install a package with an entry point in {GROUP}"
    raise ConfigError(key, name, reason)


def _loaded(key: str, name: str, base: type[T], point: importlib.metadata.EntryPoint) -> type[T]:
    try:
        loaded: Any = point.load()
    except Exception as error:
        raise PluginError(f"The class for {key}={name} cannot be imported from {point.value}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigError(key, name, f"{point.value} is not a subclass of {base.__name__}; name one that is")
    return loaded
