"""Resolves ``${...}`` references in the worker's own file. Sluice's own config providers run in this process.

Other providers are plugins, whose code runs only in child processes (invariant I7): each of their paths is looked up by
a child process started for it, which ends with its answer.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Final

from connect.config import ConfigType
from connect.errors import ConfigError
from connect.internals.kafka.auth.jaas import client_secrets
from connect.internals.plugins import PluginKind
from connect.providers import ConfigData, ConfigProvider, resolve_references
from worker.config.worker import WorkerConfig
from worker.messages import messages
from worker.runtime.entry import main as child_main
from worker.runtime.providers import provider_aliases, provider_class, provider_of, provider_registry, provider_secrets
from worker.security.redaction import Redaction
from worker.supervisor.inquiries import ask
from worker.supervisor.process import ForkServerLauncher, Launcher

__all__ = ["ChildProvider", "worker_values"]

logger = logging.getLogger(__name__)
_OWN: Final = "connect.providers."
_ANSWERED_SECONDS: Final = 60.0


def worker_values(props: Mapping[str, str], redaction: Redaction) -> dict[str, str]:
    """Return the worker's configuration with references resolved; its secrets are hidden from now on."""
    aliases = provider_aliases(props)
    redaction.add(provider_secrets(props))
    providers: dict[str, ConfigProvider] = {}
    if aliases:
        registry = provider_registry(props)
        launcher = ForkServerLauncher(child_main)
        for alias in aliases:
            entry = registry.find(PluginKind.CONFIG_PROVIDER, provider_class(alias, props))
            if entry.class_name.startswith(_OWN) and entry.folder is None:
                _warn_of_any_path(alias, entry.class_name, props)
                providers[alias] = provider_of(alias, props, registry, redaction)
            else:
                providers[alias] = ChildProvider(alias, props, redaction, launcher)
    resolved = resolve_references(props, providers)
    for (alias, _), ttl_ms in resolved.ttls_ms.items():
        logger.warning(
            "The values from config provider %s in the worker's file expire after %g s. The worker looks them up only "
            "when it starts: restart it before then.",
            alias,
            ttl_ms / 1000,
        )
    values = {key: value for key, value in resolved.values.items() if value is not None}
    passwords = [key.name for key in WorkerConfig.definitions() if key.type is ConfigType.PASSWORD]
    redaction.add([*(values[key] for key in passwords if key in values), *client_secrets(values)])
    return values


def _warn_of_any_path(alias: str, class_name: str, props: Mapping[str, str]) -> None:
    key = f"config.providers.{alias}.param.allowed.paths"
    if class_name.endswith((".FileConfigProvider", ".DirectoryConfigProvider")) and not props.get(key):
        logger.warning(
            "Config provider %s reads any file that this worker can read, except the worker's own. Set %s to the "
            "folders that are meant for connectors.",
            alias,
            key,
        )


class ChildProvider(ConfigProvider):
    """A config provider of the worker's file that looks up values in child processes."""

    def __init__(
        self,
        alias: str,
        props: Mapping[str, str],
        redaction: Redaction,
        launcher: Launcher,
        patience: float = _ANSWERED_SECONDS,
    ) -> None:
        self._alias = alias
        self._props = dict(props)
        self._redaction = redaction
        self._launcher = launcher
        self._patience = patience

    def configure(self, props: Mapping[str, str]) -> None:
        """Do nothing: each child process configures it from the worker's file."""

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Look up values in a child process.

        A :class:`~connect.errors.ConfigError` names the key of the worker's file with the reference.
        """
        inquiry = messages.LookUpValues(self._props, self._alias, path, None if keys is None else sorted(keys))
        match ask(self._launcher, inquiry, f"config provider {self._alias}", self._patience):
            case messages.ValuesFound(values, ttl_ms):
                self._redaction.add(values.values())
                return ConfigData(values, ttl_ms)
            case messages.Refused(message):
                reason = message
            case messages.Failed(trace):
                reason = f"it failed: {trace}"
            case str() as reason:
                pass
            case report:
                reason = f"its process answered {type(report).__name__}, which it was not asked for"
        raise self._refused(path, keys, reason)

    def _refused(self, path: str, keys: Collection[str] | None, reason: str) -> ConfigError:
        """Return the error for these values, at the first key that refers to them; it shows only the reference."""
        middle = f"{path}:" if path else ""
        references = [f"${{{self._alias}:{middle}{key}}}" for key in sorted(keys or ())]
        for reference in references:
            for key, value in self._props.items():
                if reference in value:
                    return ConfigError(key, reference, self._text(reason))
        return ConfigError(f"config.providers.{self._alias}.class", None, self._text(reason))

    def _text(self, reason: str) -> str:
        return (
            f"Config provider {self._alias} ({provider_class(self._alias, self._props)}) could not look a value up: "
            f"{reason}. Correct the provider, or its settings config.providers.{self._alias}.param.*"
        )
