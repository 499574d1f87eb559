"""The stored configurations, as access control needs them: the plugins they name, and the secrets to hide."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from connect.config import HIDDEN, ConfigType
from connect.errors import ConnectError, NotFoundError, PluginError
from connect.internals.chain.specs import VERSION
from connect.internals.kafka.auth.jaas import client_secrets
from connect.internals.plugins import PluginKind, PluginRegistry
from rest.http.timeouts import Patience
from worker.herder.herder import Herder
from worker.security.permissions import Target
from worker.security.redaction import sounds_secret

__all__ = ["StoredConfigs"]

_PATIENCE_SECONDS: Final = 30.0
_KEYS_PATIENCE_SECONDS: Final = 10.0
_AGAIN_SECONDS: Final = 60.0
"""How long a plugin that failed to describe its keys is not asked again, so that readers of configs need not wait."""
_MOST_KEPT: Final = 500
_CLASS: Final = "connector.class"
_CHAIN: Final = re.compile(r"((?:transforms|predicates)\.[^.]+)\.type")
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_REFERENCE: Final = re.compile(r"(?:\$\{[^{}]*\})+")
_URL_PASSWORD: Final = re.compile(
    r"(://[^\s:/@?#]*:)[^\s/@?#]+(?=@)|((?:password|passwd|secret|token)=)[^&;\s]+", re.IGNORECASE
)
_Named: TypeAlias = tuple[str, str]
"""The name of a plugin, and the requested range of versions."""

_NEVER_SECRET: Final = frozenset(("name", _CLASS, "tasks.max", "topics", "topics.regex"))


class StoredConfigs:
    """Looks up the plugins of connectors, and hides the secrets of their configurations. Thread-safe."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder
        self._patience = Patience(_PATIENCE_SECONDS)
        self._keys_patience = Patience(_KEYS_PATIENCE_SECONDS)
        self._failed: dict[_Named, float] = {}
        self._secret_keys: OrderedDict[_Named, Mapping[str, bool]] = OrderedDict()
        self._one_at_a_time = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of all connectors."""
        return self._patience.wait(self._herder.connectors.names())

    def target(self, connector: str) -> Target:
        """Return a connector as the target of a permission, with the names of its plugin if the connector exists."""
        return Target(connector, self.plugin_names(self.config(connector).get(_CLASS)))

    def config(self, connector: str) -> Mapping[str, str]:
        """Return the configuration of a connector; empty if there is no such connector."""
        try:
            return self._patience.wait(self._herder.connectors.config(connector))
        except NotFoundError:
            return {}

    def plugin_names(self, connector_class: object) -> tuple[str, ...]:
        """Return every name by which a role may refer to a connector class; empty if no class is given."""
        if not isinstance(connector_class, str) or not connector_class.strip():
            return ()
        registry: PluginRegistry = self._herder.plugins.registry()
        try:
            entry = registry.find(PluginKind.CONNECTOR, connector_class.strip())
        except PluginError:
            return (connector_class.strip(),)
        return tuple(dict.fromkeys(entry.names()))

    def hidden(self, config: Mapping[str, Any], plugins: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a configuration with its secrets hidden; references to config providers are not secrets.

        Secrets are the values of keys that a plugin declares as passwords, of undeclared keys whose names suggest a
        secret, and passwords in URLs. ``plugins`` is the configuration that names the plugins, if it is another one, as
        for a task config.
        """
        declared = self._declared(config if plugins is None else plugins)
        return {key: self._shown(key, value, declared) for key, value in config.items()}

    def _shown(self, key: str, value: Any, declared: Mapping[str, bool] | None) -> Any:
        if not isinstance(value, str) or not value or key in _NEVER_SECRET or _REFERENCE.fullmatch(value):
            return value
        if declared is None or declared.get(key, _sounds_secret(key, value)):
            return HIDDEN
        return _URL_PASSWORD.sub(lambda match: f"{match[1] or match[2]}{HIDDEN}", value)

    def _declared(self, config: Mapping[str, Any]) -> dict[str, bool] | None:
        """Return whether each declared key is a password; ``None`` if a plugin's keys are unknown."""
        declared: dict[str, bool] = {}
        for prefix, plugin in _plugins(config):
            keys = self._keys_of(plugin)
            if keys is None:
                return None
            declared |= {prefix + key: is_secret for key, is_secret in keys.items()}
        return declared

    def _keys_of(self, plugin: _Named) -> Mapping[str, bool] | None:
        with self._one_at_a_time:
            known, failed = self._secret_keys.get(plugin), self._failed.get(plugin, -_AGAIN_SECONDS)
        if known is not None or time.monotonic() - failed < _AGAIN_SECONDS:
            return known
        try:
            keys = self._keys_patience.wait(self._herder.plugins.keys(*plugin))
        except ConnectError:
            with self._one_at_a_time:
                self._failed = {**dict(list(self._failed.items())[-_MOST_KEPT:]), plugin: time.monotonic()}
            return None
        found = {str(key["name"]): key["type"] == ConfigType.PASSWORD for key in keys}
        with self._one_at_a_time:
            self._secret_keys[plugin] = found
            while len(self._secret_keys) > _MOST_KEPT:
                self._secret_keys.popitem(last=False)
        return found


def _plugins(config: Mapping[str, Any]) -> Iterator[tuple[str, _Named]]:
    """Yield the prefix of each plugin that a configuration names, with the plugin and its version."""
    for key, value in config.items():
        if not isinstance(value, str) or not value.strip():
            continue
        if key == _CLASS:
            yield "", (value.strip(), _version(config, "connector."))
        elif key in _CONVERTERS:
            yield f"{key}.", (value.strip(), _version(config, f"{key}."))
        elif match := _CHAIN.fullmatch(key):
            yield f"{match[1]}.", (value.strip(), _version(config, f"{match[1]}."))


def _version(config: Mapping[str, Any], prefix: str) -> str:
    return str(config.get(f"{prefix}{VERSION}") or "latest")


def _sounds_secret(key: str, value: str) -> bool:
    return sounds_secret(key) or any(True for _ in client_secrets({key: value}))
