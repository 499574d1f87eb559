"""The config providers of a worker, made from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from connect.config import ConfigData, ConfigProvider
from connect.errors import ConfigError
from connect.plugins import PluginKind, PluginRegistry
from worker.runtime.control import Link
from worker.runtime.log import Redaction
from worker.supervisor.messages import ConfigExpires

__all__ = ["OnTtl", "providers_of", "reload_after_ttl"]

OnTtl: TypeAlias = Callable[[int], None]
"""Called with the milliseconds for which the values hold that a configuration has of config providers."""

_RELOAD_ACTION: Final = "config.action.reload"


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
    aliases = _listed(worker, "config.providers")
    if not aliases:
        return {}
    registry = PluginRegistry.discover(_listed(worker, "plugin.path"), _listed(worker, "plugin.import.allowlist"))
    return {alias: _provider(alias, worker, registry, redaction) for alias in aliases}


def reload_after_ttl(link: Link, connector: Mapping[str, str]) -> OnTtl:
    """Has this process restarted when its values hold no longer, unless its ``connector`` does not want that.

    As in Kafka Connect the key is read as it is written, without references.
    """

    def reload(ttl_ms: int) -> None:
        if connector.get(_RELOAD_ACTION) != "none":
            link.send(ConfigExpires(ttl_ms))

    return reload


def _listed(worker: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in worker.get(key, "").split(",") if item.strip()]


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
