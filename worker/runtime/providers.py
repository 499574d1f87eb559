"""The config providers of a worker, made from its configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from connect.config import ConfigData, ConfigProvider
from connect.errors import ConfigError
from connect.plugins import PluginKind, PluginRegistry
from worker.runtime.log import Redaction

__all__ = ["providers_of"]


class _Remembered(ConfigProvider):
    """Has everything hidden that a provider gives away (invariant I8)."""

    def __init__(self, provider: ConfigProvider, redaction: Redaction) -> None:
        self._provider = provider
        self._redaction = redaction

    def configure(self, props: Mapping[str, str]) -> None:
        self._provider.configure(props)

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        data = self._provider.get(path, keys)
        self._redaction.add(data.values.values())
        return data

    def close(self) -> None:
        self._provider.close()


def providers_of(worker: Mapping[str, str], redaction: Redaction) -> dict[str, ConfigProvider]:
    """The providers that ``config.providers`` lists, configured, by their aliases."""
    aliases = [alias.strip() for alias in worker.get("config.providers", "").split(",") if alias.strip()]
    if not aliases:
        return {}
    folders = [folder.strip() for folder in worker.get("plugin.path", "").split(",") if folder.strip()]
    registry = PluginRegistry.discover(folders)
    return {alias: _provider(alias, worker, registry, redaction) for alias in aliases}


def _provider(alias: str, worker: Mapping[str, str], registry: PluginRegistry, redaction: Redaction) -> ConfigProvider:
    prefix = f"config.providers.{alias}."
    name = worker.get(f"{prefix}class")
    if not name:
        reason = f"config.providers lists {alias}, so its class must be named here"
        raise ConfigError(f"{prefix}class", None, reason)
    provider: ConfigProvider = registry.load(PluginKind.CONFIG_PROVIDER, name)()
    parameters = f"{prefix}param."
    provider.configure(
        {key.removeprefix(parameters): value for key, value in worker.items() if key.startswith(parameters)}
    )
    return _Remembered(provider, redaction)
