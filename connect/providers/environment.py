"""The config provider for environment variables of the worker."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import ClassVar

from connect.config import LOW, Config, Long, option
from connect.internals.java.regex import regex_from_java, valid_java_regex
from connect.providers.provider import ConfigData, ConfigProvider, RefusedReferenceError, ttl_ms

__all__ = ["EnvVarConfigProvider", "EnvVarProviderConfig"]


class EnvVarProviderConfig(Config):
    """Parameters of the provider, set as ``config.providers.<name>.param.*``."""

    allowlist_pattern: str = option(
        default=".*",
        importance=LOW,
        validator=valid_java_regex,
        doc="Regular expression for the names of variables that may be read; it must match the whole name. Set it so "
        "that connector configurations can read only variables meant for connectors.",
    )
    ttl_ms: Long | None = ttl_ms()


class EnvVarConfigProvider(ConfigProvider):
    """Reads environment variables: ``${env:DB_PASSWORD}`` or ``${env::DB_PASSWORD}``.

    A reference to a variable that is not set, or that ``allowlist.pattern`` does not match, is left unresolved.
    """

    config_class: ClassVar[type[Config]] = EnvVarProviderConfig

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def configure(self, props: Mapping[str, str]) -> None:
        """Apply ``allowlist.pattern`` and ``ttl.ms``; raise :class:`~connect.errors.ConfigError` if one is invalid."""
        config = EnvVarProviderConfig.parse(props)
        allowed = regex_from_java(config.allowlist_pattern)
        self._values = {name: value for name, value in self._environ.items() if allowed.fullmatch(name)}
        self._ttl_ms = config.ttl_ms

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the variables in ``keys``, or all variables. ``path`` must be empty."""
        if path:
            raise RefusedReferenceError(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}': use only the name of the "
                "variable, as in ${env:NAME}."
            )
        values = self._values if keys is None else {key: self._values[key] for key in keys if key in self._values}
        return ConfigData(values, self._ttl_ms)
