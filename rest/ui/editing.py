"""Pages for making and changing connectors, and the catalogue of plugins."""

from __future__ import annotations

from flask import Blueprint, Response

from connect.errors import NotFoundError, PluginError
from connect.plugins import PluginEntry, PluginKind, PluginRegistry
from rest.access.caller import caller
from rest.access.inventory import Inventory
from rest.http.waiting import Patience
from rest.ui.connector import ConnectorPages
from rest.ui.page import shown
from worker.herder.herder import Herder
from worker.security.permissions import Right

__all__ = ["editing"]


def editing(
    blueprint: Blueprint, herder: Herder, inventory: Inventory, pages: ConnectorPages, patience: Patience
) -> None:
    """Put the pages on the blueprint."""

    @blueprint.get("/new")
    def choose() -> Response:
        caller().require_somewhere(Right.EDIT)
        return shown("new.html", plugins=_connectors(herder.plugins.registry()))

    @blueprint.get("/new/<name:plugin>")
    def create(plugin: str) -> Response:
        caller().require_somewhere(Right.EDIT)
        entry = _found(herder.plugins.registry(), plugin, PluginKind.CONNECTOR)
        config = {"connector.class": plugin, "name": ""}
        return shown("edit.html", plugin=entry, config=config, name=None, revision=None)

    @blueprint.get("/connectors/<name:name>/edit")
    def edit(name: str) -> Response:
        caller().require(Right.EDIT, name)
        entry = patience.wait(herder.connectors.entry(name))
        config = inventory.hidden(entry.config)
        plugin = entry.config.get("connector.class", "")
        known = _known(herder.plugins.registry(), plugin, PluginKind.CONNECTOR)
        return pages.shown(name, "edit.html", "edit", plugin=known, config=config, revision=entry.revision)

    @blueprint.get("/plugins")
    def catalogue() -> Response:
        registry = herder.plugins.registry()
        return shown("plugins.html", kinds=[(kind, registry.entries(kind)) for kind in PluginKind])

    @blueprint.get("/plugins/<name:plugin>/config")
    def keys(plugin: str) -> Response:
        registry = herder.plugins.registry()
        entry = next((found for kind in PluginKind if (found := _known(registry, plugin, kind))), None)
        if entry is None:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        described = patience.wait(herder.plugins.keys(plugin, "latest"))
        groups: dict[str, list[dict[str, object]]] = {}
        for key in described:
            groups.setdefault(key.get("group") or "Its own", []).append(key)
        return shown("plugin.html", plugin=entry, groups=groups, count=len(described))


def _connectors(registry: PluginRegistry) -> list[PluginEntry]:
    newest = {entry.class_name: entry for entry in registry.entries(PluginKind.CONNECTOR)}
    return sorted(newest.values(), key=lambda entry: entry.class_name.rpartition(".")[2])


def _found(registry: PluginRegistry, name: str, kind: PluginKind) -> PluginEntry:
    entry = _known(registry, name, kind)
    if entry is None:
        raise NotFoundError(f"There is no connector class {name}.")
    return entry


def _known(registry: PluginRegistry, name: str, kind: PluginKind) -> PluginEntry | None:
    try:
        return registry.find(kind, name)
    except PluginError:
        return None
