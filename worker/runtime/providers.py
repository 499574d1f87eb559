"""The config providers of a worker, made from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias

from connect.errors import ConfigError
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.providers import ConfigData, ConfigProvider, DirectoryConfigProvider, FileConfigProvider
from worker.config.file_access import own_files
from worker.messages.messages import ConfigExpires
from worker.runtime.link import Link
from worker.security.redaction import Redaction

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
"""Called with the milliseconds after which values of config providers in a configuration expire."""

_SECRET_PARAMETERS: Final = ("password", "passphrase", "secret", "token", "key")
_RELOAD_ACTION: Final = "config.action.reload"


class _Remembered(ConfigProvider):
    """A provider whose values are all hidden (invariant I8)."""

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
    """Return the configured providers of ``config.providers``, by their aliases."""
    aliases = provider_aliases(worker)
    if not aliases:
        return {}
    registry = provider_registry(worker)
    return {alias: provider_of(alias, worker, registry, redaction) for alias in aliases}


def provider_aliases(worker: Mapping[str, str]) -> list[str]:
    """Return the aliases in ``config.providers``."""
    return _list(worker, "config.providers")


def provider_registry(worker: Mapping[str, str]) -> PluginRegistry:
    """Return all plugins of the worker, found before its configuration can be parsed, which needs the providers."""
    return PluginRegistry.discover(_list(worker, "plugin.path"), _list(worker, "plugin.import.allowlist"))


def provider_class(alias: str, worker: Mapping[str, str]) -> str:
    """Return the class name of an alias, as written."""
    key = f"config.providers.{alias}.class"
    if not (name := worker.get(key)):
        raise ConfigError(key, None, f"config.providers lists {alias}, so its class must be named here")
    return name


def provider_secrets(worker: Mapping[str, str]) -> Iterator[str]:
    """Yield the parameters of config providers whose names suggest a secret: providers do not declare them."""
    for key, value in worker.items():
        if key.startswith("config.providers.") and ".param." in key and key.lower().endswith(_SECRET_PARAMETERS):
            yield value


def provider_of(
    alias: str, worker: Mapping[str, str], registry: PluginRegistry, redaction: Redaction
) -> ConfigProvider:
    """Return the configured provider of an alias; its values are hidden."""
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
    """Return the callback that asks for a restart of this unit when its values expire, unless
    ``config.action.reload=none``.

    As in Kafka Connect, that key of the ``connector`` is read without resolving references.
    """

    def reload(ttl_ms: int) -> None:
        if connector.get(_RELOAD_ACTION) != "none":
            link.send(ConfigExpires(ttl_ms))

    return reload


def _list(worker: Mapping[str, str], key: str) -> list[str]:
    return [item.strip() for item in worker.get(key, "").split(",") if item.strip()]
