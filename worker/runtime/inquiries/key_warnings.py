"""Warnings about a connector's configuration that Kafka Connect does not refuse, wherever they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from connect.errors import ConfigError
from connect.internals.chain.specs import VERSION
from worker.config.unknown_keys import KeyOwner, suggest_known_keys, tell_of_unowned_keys
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.connector_keys import ChainPlugin, key_owners, known_keys, plugins_of

__all__ = ["key_warnings"]


def key_warnings(assembly: Assembly) -> Iterator[str]:
    """Yield warnings about unknown keys, and those of the transformations, predicates and converters.

    The log, ``sluice validate`` and whoever else shows the warnings of a validation have them from here.
    """
    known, owners = known_keys(assembly), key_owners(assembly)
    old = {key for owner in owners for key in owner.old}
    yield from suggest_known_keys([key for key in assembly.props if key not in old], known)
    yield from tell_of_unowned_keys(assembly.props, known, owners)
    for owner in owners:
        yield from _about_the_worker(assembly, owner)
    for plugin in plugins_of(assembly):
        yield from (f"{plugin.prefix.removesuffix('.')}: {warning}" for warning in _warnings_of(plugin))


def _about_the_worker(assembly: Assembly, owner: KeyOwner) -> Iterator[str]:
    """Yield warnings about the worker's keys of a converter that the connector has from it.

    The worker itself runs no code of plugins, so that it cannot know them.
    """
    role = owner.prefix.removesuffix(".")
    if owner.known is None or assembly.worker_props.get(role) != owner.name or assembly.props.get(role):
        return
    given = {key: value for key, value in assembly.worker_props.items() if key.startswith(owner.prefix)}
    known = {*owner.known, f"{owner.prefix}{VERSION}"}
    for warning in (*suggest_known_keys(given, known), *tell_of_unowned_keys(given, known, [owner])):
        yield f"In the worker's file: {warning}"


def _warnings_of(plugin: ChainPlugin) -> list[str]:
    """Return the warnings of a plugin's own configuration; none if it is invalid."""
    if plugin.config_class is None:
        return []
    try:
        return list(plugin.config_class.parse(plugin.props).warnings())
    except ConfigError:
        return []
