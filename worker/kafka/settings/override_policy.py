"""Which client settings a connector may bring: ``connector.client.config.override.policy``, and what none may."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from connect.config import validator
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from worker.kafka.settings.kind import ClientKind
from worker.kafka.settings.override_dangers import ALLOWED_FILES_KEY, ALLOWED_URLS_KEY, OverrideDangers

__all__ = ["ALLOWLIST_KEY", "POLICY_KEY", "check_overrides", "known_policy", "policy_name", "refused_overrides"]

POLICY_KEY = "connector.client.config.override.policy"
ALLOWLIST_KEY = "connector.client.config.override.allowlist"

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
    """Return the name of a policy that may be given by its name or its Java class, in full or simple."""
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
    """Return one error for each client setting of ``connector`` that the worker's file does not let it have."""
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
    """Return one error for each client setting of ``connector`` that ``policy`` does not allow.

    ``allowlist`` holds the keys, without prefix, that the policy ``Allowlist`` allows. ``kinds`` are the
    kinds of client the connector uses; settings of others are not looked at. Each error is shown at the
    full key.
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
