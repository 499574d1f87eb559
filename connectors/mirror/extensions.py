"""The classes that a configuration names: replication policies and filters, ours and those of other packages."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from connect.errors import ConfigError, PluginError

__all__ = ["GROUP", "extension_class"]

GROUP: Final = "sluice.mirror"
"""The group of the entry points by which a package offers policies and filters."""

T = TypeVar("T")


def extension_class(key: str, name: str, base: type[T], own: Mapping[str, type[T]]) -> type[T]:
    """The class that ``key`` names: one of our ``own`` by Java's name or its last part, or an entry point.

    An entry point is named by itself or by the dotted path of its class. No other module is imported, whatever a
    configuration says. Raises :class:`~connect.errors.ConfigError` if there is no such class.
    """
    for written, known in own.items():
        if name in {written, written.rpartition(".")[2], f"{known.__module__}.{known.__qualname__}"}:
            return known
    for point in importlib.metadata.entry_points(group=GROUP):
        if name in {point.name, point.value.replace(":", ".")}:
            return _loaded(key, name, base, point)
    known_names = ", ".join(own)
    reason = (
        f"Class {name} could not be found. There are {known_names}; a package offers more by entry points of {GROUP}"
    )
    raise ConfigError(key, name, reason)


def _loaded(key: str, name: str, base: type[T], point: importlib.metadata.EntryPoint) -> type[T]:
    try:
        loaded: Any = point.load()
    except Exception as error:
        raise PluginError(f"{key}={name} cannot be imported from {point.value}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigError(key, name, f"{point.value} is not a {base.__name__}; name a class that is")
    return loaded
