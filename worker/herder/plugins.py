"""Requests for plugins: the installed ones, their config keys, and the validation of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from connect.errors import NotFoundError, PluginError
from connect.internals.plugins import PluginEntry, PluginKind, PluginRegistry
from worker.config.unknown_keys import key_of
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import GivenConfig, check_same_class, merged, required_class
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Request, Requests, Steps, asked
from worker.messages import messages

__all__ = ["Plugins"]

Document: TypeAlias = dict[str, Any]


class Plugins:
    """Asks plugins, each in its own process. Methods may be called from any thread."""

    def __init__(
        self,
        requests: Requests,
        worker_props: Mapping[str, str],
        registry: PluginRegistry,
        connectors: Connectors,
        inquiries: Inquiries,
    ) -> None:
        self._requests = requests
        self._worker_props = dict(worker_props)
        self._registry = registry
        self._connectors = connectors
        self._inquiries = inquiries

    def registry(self) -> PluginRegistry:
        """Return the installed plugins; answered without the herder."""
        return self._registry

    @asked
    def keys(self, request: Request[list[Document]], name: str, version: str) -> Steps[list[Document]]:
        """Return the config keys of a plugin of any kind; for connectors, including those of the framework."""
        entry = self._listed(name)
        request.enter(f"asking plugin {entry.class_name} for its keys")
        inquiry = messages.DescribePlugin(entry.kind.value, entry.class_name, version, self._worker_props)
        report = yield from self._inquiries.ask(inquiry, messages.PluginDescribed)
        return report.keys

    @asked
    def validate(
        self,
        request: Request[Document],
        plugin: str,
        config: GivenConfig,
        connector: str | None = None,
        *,
        connect: bool = False,
        choices: bool = False,
    ) -> Steps[Document]:
        """Validate a configuration for the connector plugin ``plugin``; the result has all mistakes.

        If ``connector`` is given, ``config`` is a patch of that connector's configuration. With ``connect``, the
        connector's system is asked, too, and ``connection`` in the result tells whether it was. With ``choices``, the
        result has the keys that :meth:`choices` can be asked for, each with what its values are.
        """
        config, in_config = self._given(plugin, config, connector)
        request.enter(f"waiting for {in_config} to validate the given configuration")
        inquiry = messages.ValidateConfig(dict(config), self._worker_props, connect)
        report = yield from self._inquiries.ask(inquiry, messages.Validated)
        warnings = [{"key": key_of(warning, config), "message": warning} for warning in report.warnings]
        asked_system = {"connection": report.connection} if report.connection is not None else {}
        askable = {"choices": report.choices} if choices else {}
        return {**report.infos, **({"warnings": warnings} if warnings else {}), **asked_system, **askable}

    @asked
    def choices(
        self, request: Request[Document], plugin: str, config: GivenConfig, key: str, connector: str | None = None
    ) -> Steps[Document]:
        """Ask the system of an unfinished configuration what ``key`` can name: tables, topics.

        If ``connector`` is given, ``config`` is a patch of that connector's configuration.
        """
        config, in_config = self._given(plugin, config, connector)
        request.enter(f"waiting for the system of {in_config} to tell what {key} can name")
        given = {name: value for name, value in config.items() if value is not None}
        inquiry = messages.FindChoices(given, self._worker_props, key)
        report = yield from self._inquiries.ask(inquiry, messages.ChoicesFound)
        return {"key": key, "values": report.values, "total": report.total}

    def _given(self, plugin: str, config: GivenConfig, connector: str | None) -> tuple[GivenConfig, str]:
        """Return a whole configuration, with the connector's own values below a patch, and its class."""
        if connector is not None:
            config = merged(self._connectors.entry(connector).config, config)
        in_config = required_class(config)
        check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
        return config, in_config

    def _listed(self, name: str) -> PluginEntry:
        """Return the listed plugin of any kind that ``name`` refers to."""
        for kind in PluginKind:
            try:
                entry = self._registry.find(kind, name)
            except PluginError:
                continue
            if entry in self._registry.entries(kind):
                return entry
        raise NotFoundError(f"Unknown plugin {name}.")
