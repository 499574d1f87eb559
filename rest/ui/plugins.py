"""``/ui/plugins`` and ``/ui/new``: the catalogue of plugins, and the form for a new connector."""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response

from connect.errors import NotFoundError, PluginError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry, summary
from rest.access.caller import caller
from rest.http.timeouts import Patience
from rest.ui.page import shown
from worker.config.connector import SinkConnectorConfig, SourceConnectorConfig
from worker.herder.plugins import Plugins
from worker.security.permissions import Right

__all__ = ["FRAMEWORK_GROUPS", "plugin_pages"]

FRAMEWORK_GROUPS: Final = sorted(
    {key.group for kind in (SourceConnectorConfig, SinkConnectorConfig) for key in kind.definitions() if key.group}
)
"""The groups of the options that all connectors have: a form shows them after those of the connector's class."""


def plugin_pages(blueprint: Blueprint, plugins: Plugins, patience: Patience) -> None:
    """Add the pages to the blueprint."""

    @blueprint.get("/new")
    def choose() -> Response:
        caller().require_somewhere(Right.EDIT)
        entries = _connector_plugins(plugins.registry())
        summaries = {entry.class_name: summary(entry.class_name, entry.folder) for entry in entries}
        return shown("new.html", plugins=entries, summaries=summaries)

    @blueprint.get("/new/<name:plugin>")
    def create(plugin: str) -> Response:
        caller().require_somewhere(Right.EDIT)
        entry = _found(plugins.registry(), plugin, PluginKind.CONNECTOR)
        config = {"connector.class": plugin, "name": ""}
        return shown(
            "edit.html",
            plugin=entry,
            summary=summary(entry.class_name, entry.folder),
            config=config,
            name=None,
            revision=None,
            framework_groups=FRAMEWORK_GROUPS,
        )

    @blueprint.get("/plugins")
    def catalogue() -> Response:
        registry = plugins.registry()
        return shown("plugins.html", kinds=[(kind, registry.entries(kind)) for kind in PluginKind])

    @blueprint.get("/plugins/<name:plugin>/config")
    def keys(plugin: str) -> Response:
        registry = plugins.registry()
        entry = next((found for kind in PluginKind if (found := _known(registry, plugin, kind))), None)
        if entry is None:
            raise NotFoundError(f"Unknown plugin {plugin}.")
        described = patience.wait(plugins.keys(plugin, "latest"))
        groups: dict[str, list[dict[str, object]]] = {}
        for key in described:
            groups.setdefault(key.get("group") or "General", []).append(key)
        told = summary(entry.class_name, entry.folder)
        return shown("plugin.html", plugin=entry, summary=told, groups=groups, count=len(described))


def _connector_plugins(registry: PluginRegistry) -> list[PluginEntry]:
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
