"""Rules about the client settings that a connector may override.

``connector.client.config.override.policy`` decides, except that some settings are reserved for the worker's file
whatever the policy allows. Connector configurations come from anyone who can reach the REST API, and these settings
could load code into the worker's process, run a program, send files of its machine to others, or log in as the machine
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from connect.config import validator
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.kafka.auth.jaas import JAAS_CONFIG, parse_jaas_config
from connect.internals.kafka.auth.sasl import LOGIN_MODULES
from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.native_keys import REFUSED_NATIVE_KEYS

__all__ = [
    "ALLOWED_FILES_KEY",
    "ALLOWED_URLS_KEY",
    "ALLOWLIST_KEY",
    "POLICY_KEY",
    "OverrideDangers",
    "check_overrides",
    "known_policy",
    "policy_name",
    "refused_overrides",
]

POLICY_KEY = "connector.client.config.override.policy"
ALLOWLIST_KEY = "connector.client.config.override.allowlist"

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

_CLASS_SUFFIX = "ConnectorClientConfigOverridePolicy"
_PACKAGE = "org.apache.kafka.connect.connector.policy."

_PRINCIPAL_KEYS = frozenset(("sasl.jaas.config", "sasl.mechanism", "security.protocol"))

_POLICIES: Mapping[str, Callable[[str, Collection[str]], bool]] = {
    "All": lambda _key, _allowlist: True,
    "None": lambda _key, _allowlist: False,
    "Principal": lambda key, _allowlist: key in _PRINCIPAL_KEYS,
    "Allowlist": lambda key, allowlist: key in allowlist,
}


def policy_name(policy: str) -> str:
    """Return the name of a policy given by its name or its Java class, fully qualified or simple."""
    name = policy.strip().removeprefix(_PACKAGE).removesuffix(_CLASS_SUFFIX)
    if name not in _POLICIES:
        raise ConfigError(POLICY_KEY, policy, f"String must be one of: {', '.join(_POLICIES)}")
    return name


@validator(f"one of {', '.join(_POLICIES)}, or the Java class of one")
def known_policy(_key: str, value: str) -> None:
    """Accept the names of policies."""
    policy_name(value)


def refused_overrides(
    worker: Mapping[str, str], connector: Mapping[str, str], kinds: Collection[ClientKind] = tuple(ClientKind)
) -> list[ConfigError]:
    """Return an error for each client setting of ``connector`` that the worker's file does not allow."""
    policy, allowlist = worker.get(POLICY_KEY, "All"), _listed(worker, ALLOWLIST_KEY)
    errors = check_overrides(policy, connector, allowlist=allowlist, kinds=kinds)
    dangers = OverrideDangers(_listed(worker, ALLOWED_URLS_KEY), _listed(worker, ALLOWED_FILES_KEY))
    for kind in kinds:
        errors += dangers.errors(kind, _overrides(kind, connector))
    return errors


def _overrides(kind: ClientKind, connector: Mapping[str, str]) -> dict[str, str]:
    prefix = kind.override_prefix
    return {key.removeprefix(prefix): value for key, value in connector.items() if key.startswith(prefix)}


def _listed(worker: Mapping[str, str], key: str) -> frozenset[str]:
    return frozenset(item.strip() for item in worker.get(key, "").split(",") if item.strip())


def check_overrides(
    policy: str,
    connector: Mapping[str, str],
    *,
    allowlist: Collection[str] = (),
    kinds: Collection[ClientKind] = tuple(ClientKind),
) -> list[ConfigError]:
    """Return an error for each client setting of ``connector`` that ``policy`` does not allow.

    ``allowlist`` holds the keys, without prefix, that the policy ``Allowlist`` allows. ``kinds`` are the kinds of
    client that the connector uses; settings of others are ignored. Each error is shown at the full key.
    """
    name = policy_name(policy)
    return [
        ConfigRuleError(
            f"The '{name}' policy does not allow '{key.removeprefix(kind.override_prefix)}' "
            "to be overridden in the connector configuration.",
            key,
        )
        for kind in kinds
        for key in connector
        if key.startswith(kind.override_prefix)
        and not _POLICIES[name](key.removeprefix(kind.override_prefix), allowlist)
    ]


@dataclass(frozen=True, slots=True)
class OverrideDangers:
    """Settings that no policy allows, except for OAuth endpoints and files that the worker's file lists."""

    urls: Collection[str] = ()
    files: Collection[str] = ()

    def errors(self, kind: ClientKind, overrides: Mapping[str, str]) -> Iterator[ConfigError]:
        """Return an error for each of ``overrides``, given without prefix, that a connector may not set."""
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
