"""The config providers of a worker, made from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

from connect.errors import ConfigError
from connect.plugins import PluginKind, PluginRegistry
from connect.providers import ConfigData, ConfigProvider, DirectoryConfigProvider, FileConfigProvider
from worker.config.file_access import own_files
from worker.runtime.link import Link
from worker.security.redaction import Redaction
from worker.supervisor.messages.messages import ConfigExpires

__all__ = [
    "OnTtl",
    "provider_aliases",
    "provider_class",
    "provider_of",
    "provider_registry",
    "provider_secrets",
    "providers_of",
    "reload_after_ttl",
]

OnTtl: TypeAlias = Callable[[int], None]
"""Called with the milliseconds for which the values hold that a configuration has of config providers."""

_SECRET_PARAMETERS: Final = ("password", "passphrase", "secret", "token", "key")
_RELOAD_ACTION: Final = "config.action.reload"


class _Remembered(ConfigProvider):
    """A provider whose every value is hidden (invariant I8)."""

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
    aliases = provider_aliases(worker)
    if not aliases:
        return {}
    registry = provider_registry(worker)
    return {alias: provider_of(alias, worker, registry, redaction) for alias in aliases}


def provider_aliases(worker: Mapping[str, str]) -> list[str]:
    """The aliases in ``config.providers``."""
    return _list(worker, "config.providers")


def provider_registry(worker: Mapping[str, str]) -> PluginRegistry:
    """The plugins there are, which providers are needed for before the configuration can be read as a whole."""
    return PluginRegistry.discover(_list(worker, "plugin.path"), _list(worker, "plugin.import.allowlist"))


def provider_class(alias: str, worker: Mapping[str, str]) -> str:
    """The class that an alias stands for, as it is written."""
    key = f"config.providers.{alias}.class"
    if not (name := worker.get(key)):
        raise ConfigError(key, None, f"config.providers lists {alias}, so its class must be named here")
    return name


def provider_secrets(worker: Mapping[str, str]) -> Iterator[str]:
    """The parameters of config providers that are secret by their names: a provider need not say which they are."""
    for key, value in worker.items():
        if key.startswith("config.providers.") and ".param." in key and key.lower().endswith(_SECRET_PARAMETERS):
            yield value


def provider_of(
    alias: str, worker: Mapping[str, str], registry: PluginRegistry, redaction: Redaction
) -> ConfigProvider:
    """The provider that an alias stands for, configured; what it gives is hidden."""
    loaded = registry.load(PluginKind.CONFIG_PROVIDER, provider_class(alias, worker))
    reads_files = issubclass(loaded, (FileConfigProvider, DirectoryConfigProvider))
    provider: ConfigProvider = loaded(own_files(worker)) if reads_files else loaded()
    parameters = f"config.providers.{alias}.param."
    redaction.add(provider_secrets(worker))
    provider.configure(
        {key.removeprefix(parameters): value for key, value in worker.items() if key.startswith(parameters)}
    )
    return _Remembered(provider, redaction)


def reload_after_ttl(link: Link, connector: Mapping[str, str]) -> OnTtl:
    """The callback that restarts this process when its values expire, unless its ``connector`` does not want that.

    As in Kafka Connect the key is read as it is written, without references.
    """

    def reload(ttl_ms: int) -> None:
        if connector.get(_RELOAD_ACTION) != "none":
            link.send(ConfigExpires(ttl_ms))

    return reload


def _list(worker: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in worker.get(key, "").split(",") if item.strip()]
