"""The options that Spark passes on: their names in the right case, and what their references stand for.

Spark makes names lower case, but aliases and some Connect keys contain upper case. References to config providers are
resolved in the process that reads or writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from connect.config.password import HIDDEN
from connect.errors import ConfigError, ConnectError
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.providers import (
    ConfigProvider,
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
    ResolvedConfig,
    resolve_references,
)

__all__ = ["alias_names", "aliases", "resolved_options", "secrets_hidden", "written_names"]

_PLURAL: Final = ("transforms", "predicates", "config.providers")
_KEY: Final = "config.providers"
_SHORTEST_CHARACTERS: Final = 4
"""Shorter secrets are not searched for: almost any text would contain them."""


def aliases(options: Mapping[str, str], key: str) -> list[str]:
    """Return the aliases an option lists, in order; raises :class:`~connect.errors.ConfigError` if two differ only in
    case.
    """
    listed = list(dict.fromkeys(alias.strip() for alias in options.get(key, "").split(",") if alias.strip()))
    if len({alias.lower() for alias in listed}) < len(listed):
        raise ConfigError(key, options[key], "Two aliases differ only in case, which Spark's options do not keep.")
    return listed


def alias_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options, with the aliases of transformations and the like in their original case."""
    prefixes = {f"{key}.{alias}.".lower(): f"{key}.{alias}." for key in _PLURAL for alias in aliases(options, key)}
    named: dict[str, str] = {}
    for name, value in options.items():
        # The longest match: an alias may begin with another alias and a dot.
        lower = max((prefix for prefix in prefixes if name.lower().startswith(prefix)), key=len, default="")
        named[prefixes[lower] + name[len(lower) :] if lower else name] = value
    return named


def written_names(options: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """Return the options, renamed to those of ``keys`` that differ from their names only in case."""
    known: Collection[str] = set(keys)
    by_lower = {key.lower(): key for key in known}
    return {name if name in known else by_lower.get(name.lower(), name): value for name, value in options.items()}


def resolved_options(options: Mapping[str, str], registry: PluginRegistry) -> ResolvedConfig:
    """Return the options with references resolved: those to ``env``, ``file`` and ``dir``, and to config providers the
    options define.

    Raises :class:`~connect.errors.ConfigError` if a provider cannot be created from the options, and
    :class:`~connect.errors.ConnectError` if it cannot look up a value.
    """
    providers = {
        "env": _configured(EnvVarConfigProvider(), {}),
        "file": _configured(FileConfigProvider(), {}),
        "dir": _configured(DirectoryConfigProvider(), {}),
    }
    providers |= {alias: _provider(alias, options, registry) for alias in aliases(options, _KEY)}
    try:
        return resolve_references(options, providers)
    finally:
        for provider in providers.values():
            provider.close()


@contextmanager
def secrets_hidden(secrets: Collection[str]) -> Iterator[None]:
    """Hide ``secrets`` in the text of any error raised in the block, and in the errors that caused it
    (invariant I8).
    """
    try:
        yield
    except Exception as error:
        if not any(_has_secret(link, secrets) for link in _links(error)):
            raise
        text = str(error)
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        shown = ConnectError(text or f"{type(error).__name__}, whose cause has a secret in its text")
    else:
        return
    # Raised outside of the except clause, so that the original error does not become the context of this one.
    raise shown


def _has_secret(error: BaseException, secrets: Collection[str]) -> bool:
    text = str(error)
    return any(secret in text for secret in secrets if len(secret) >= _SHORTEST_CHARACTERS)


def _links(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _provider(alias: str, options: Mapping[str, str], registry: PluginRegistry) -> ConfigProvider:
    key = f"{_KEY}.{alias}.class"
    if not (name := options.get(key)):
        raise ConfigError(key, None, f"{_KEY} lists {alias}, so its class must be named here")
    prefix = f"{_KEY}.{alias}.param."
    own = {option.removeprefix(prefix): value for option, value in options.items() if option.startswith(prefix)}
    provider: ConfigProvider = registry.load(PluginKind.CONFIG_PROVIDER, name)()
    return _configured(provider, own)


def _configured(provider: ConfigProvider, props: Mapping[str, str]) -> ConfigProvider:
    provider.configure(props)
    return provider
