"""Requests for plugins: the installed ones, their config keys, and the validation of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from connect.errors import NotFoundError, PluginError
from connect.plugins import PluginEntry, PluginKind, PluginRegistry
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import GivenConfig, check_same_class, merged, required_class
from worker.herder.inbox import Request, Requests
from worker.herder.inquiries import Inquiries
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report

__all__ = ["PluginRequests"]

Document: TypeAlias = dict[str, Any]


class PluginRequests:
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
        """The installed plugins; answered without the herder."""
        return self._registry

    def keys(self, name: str, version: str) -> Request[list[Document]]:
        """Return the config keys of a plugin of any kind; for connectors, including those of the framework."""
        return self._requests.begin(lambda request: self._describe(request, name, version))

    def validate(self, plugin: str, config: GivenConfig, connector: str | None = None) -> Request[Document]:
        """Validate a configuration for the connector plugin ``plugin``; the result has all mistakes.

        If ``connector`` is given, ``config`` is a patch of that connector's configuration.
        """
        return self._requests.begin(lambda request: self._validate(request, plugin, config, connector))

    def _describe(self, request: Request[list[Document]], name: str, version: str) -> None:
        entry = self._listed(name)

        def answered(report: Report) -> None:
            assert isinstance(report, messages.PluginDescribed)
            request.set_result(report.keys)

        request.enter(f"asking plugin {entry.class_name} for its keys")
        inquiry = messages.DescribePlugin(entry.kind.value, entry.class_name, version, self._worker_props)
        self._inquiries.answer(inquiry, request, answered)

    def _validate(self, request: Request[Document], plugin: str, config: GivenConfig, connector: str | None) -> None:
        if connector is not None:
            config = merged(self._connectors.entry(connector).config, config)

        def answered(report: Report) -> None:
            assert isinstance(report, messages.Validated)
            request.set_result(report.infos)

        in_config = required_class(config)
        check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
        request.enter(f"waiting for {in_config} to validate the given configuration")
        self._inquiries.answer(messages.ValidateConfig(dict(config), self._worker_props), request, answered)

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
