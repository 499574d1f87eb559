"""Client settings that only the worker's file may have, whatever the override policy allows.

A connector's configuration comes from whoever reaches the REST API. These settings would load code into the worker's
process or run a program, have it send files of its machine to others, or log in as the machine itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from worker.kafka.auth.jaas import JAAS_CONFIG, parse_jaas_config
from worker.kafka.auth.sasl import LOGIN_MODULES
from worker.kafka.settings.kind import ClientKind
from worker.kafka.settings.native_keys import REFUSED_NATIVE_KEYS

__all__ = ["ALLOWED_FILES_KEY", "ALLOWED_URLS_KEY", "OverrideDangers"]

# Java has system properties of these names.
ALLOWED_URLS_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
ALLOWED_FILES_KEY: Final = "org.apache.kafka.sasl.oauthbearer.allowed.files"

_URL_KEYS: Final = frozenset(("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url"))
_FILE_KEYS: Final = frozenset(
    (
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.template.file",
    )
)
_FOR_THE_WORKER: Final = {
    "sasl.kerberos.kinit.cmd": "It names a program that the worker would run",
    "sasl.oauthbearer.metadata.authentication.type": "It would log in as the machine that the worker runs on",
}

_UNLISTED: Final = "What it names is not listed in {} of the worker's file: list it there, or remove the key"


@dataclass(frozen=True, slots=True)
class OverrideDangers:
    """What the worker's file allows of such settings: token endpoints and files for OAuth, by their exact texts."""

    urls: Collection[str] = ()
    files: Collection[str] = ()

    def errors(self, kind: ClientKind, overrides: Mapping[str, str]) -> Iterator[ConfigError]:
        """One error for each of ``overrides``, by their names without prefix, that a connector may not have."""
        for name, value in overrides.items():
            key = kind.override_prefix + name
            if name in REFUSED_NATIVE_KEYS:
                yield _cannot_be_used(key, REFUSED_NATIVE_KEYS[name])
            elif name in _FOR_THE_WORKER:
                remedy = f"set {kind.worker_prefix}{name} in the worker's file if you need it"
                yield _cannot_be_used(key, f"{_FOR_THE_WORKER[name]}: remove the key, or {remedy}")
            elif name in _URL_KEYS and not _is_listed(value, self.urls):
                yield _cannot_be_used(key, _UNLISTED.format(ALLOWED_URLS_KEY))
            elif name in _FILE_KEYS and not _is_listed(value, self.files):
                yield _cannot_be_used(key, _UNLISTED.format(ALLOWED_FILES_KEY))
            elif name == JAAS_CONFIG and value.strip():
                yield from _login_errors(key, value)


def _login_errors(key: str, value: str) -> Iterator[ConfigError]:
    try:
        module = parse_jaas_config(value).class_name
    except ConfigError as error:
        yield ConfigError(key, error.value, error.reason)
        return
    if module not in LOGIN_MODULES:
        yield _cannot_be_used(key, f"Its login module must be one of {', '.join(sorted(LOGIN_MODULES))}")


def _is_listed(value: str, listed: Collection[str]) -> bool:
    return not value.strip() or value.strip() in listed


def _cannot_be_used(key: str, reason: str) -> ConfigError:
    return ConfigRuleError(f"Configuration {key} cannot be used. {reason}", key)
