"""What a principal may do: roles, parsed from the file in ``rest.authorization.file``. Pure functions.

A role belongs to users and groups, and allows or denies rights on connectors, which it selects by patterns of their
names and plugins. A right denied by any role of a principal is denied, whatever others allow.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from connect.config.validators import matches_wildcard
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import ClientKind
from worker.security.principals import Principal

__all__ = ["EVERYTHING", "OF_CONNECTORS", "OF_WORKER", "Permissions", "Right", "Roles", "Target", "parse_roles"]


class Right(StrEnum):
    """A right that a role can allow or deny."""

    VIEW = "view"
    """View a connector: its existence, its state and its log."""
    CONFIGS = "configs"
    """See its configuration, with secrets hidden."""
    SECRETS = "secrets"
    """See the secrets in its configuration as well."""
    OPERATE = "operate"
    """Pause, resume, stop and restart it."""
    EDIT = "edit"
    """Create it, and change and validate its configuration."""
    OFFSETS = "offsets"
    """Change its offsets."""
    DELETE = "delete"
    """Delete it."""
    PREVIEW = "preview"
    """See records on their way through it."""
    DEAD_LETTERS = "dead-letters"
    """See the records in its dead letter queue."""
    REPLAY = "replay"
    """Have its dead letters delivered again."""
    REPAIR = "repair"
    """Edit a dead letter before it is delivered again."""
    METRICS = "metrics"
    """Read the metrics of the worker and of all its connectors."""
    CLUSTER = "cluster"
    """See the workers of the cluster, what each runs, and the levels of loggers."""
    ADMIN = "admin"
    """Change the levels of loggers, and manage the workers themselves."""


OF_WORKER: Final = frozenset((Right.METRICS, Right.CLUSTER, Right.ADMIN))
"""The rights that do not concern a connector."""
OF_CONNECTORS: Final = frozenset(Right) - OF_WORKER

_IMPLIED: Final[Mapping[Right, frozenset[Right]]] = {
    Right.EDIT: frozenset((Right.CONFIGS,)),
    Right.SECRETS: frozenset((Right.CONFIGS,)),
    Right.REPLAY: frozenset((Right.DEAD_LETTERS,)),
    Right.REPAIR: frozenset((Right.REPLAY, Right.DEAD_LETTERS)),
    Right.ADMIN: frozenset((Right.CLUSTER,)),
}
_ALL: Final = "*"
_KEY: Final = "rest.authorization.file"


@dataclass(frozen=True, slots=True)
class Target:
    """A connector: its name, and all names of its plugin if known."""

    connector: str
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Rights on the connectors whose name and plugin match, and the ``client_overrides`` they may have."""

    rights: frozenset[Right]
    connectors: tuple[str, ...] = (_ALL,)
    plugins: tuple[str, ...] = (_ALL,)
    client_overrides: tuple[str, ...] = (_ALL,)

    @property
    def asks_for_plugin(self) -> bool:
        """Whether the rule depends on a connector's plugin."""
        return _ALL not in self.plugins

    def covers(self, target: Target) -> bool:
        """Return whether the rule applies to this connector."""
        is_named = any(matches_wildcard(pattern, target.connector) for pattern in self.connectors)
        return is_named and self.covers_plugin(target.plugins)

    def covers_plugin(self, names: Iterable[str]) -> bool:
        """Return whether the rule applies to connectors of this plugin."""
        if not self.asks_for_plugin:
            return True
        return any(matches_wildcard(pattern, name) for pattern in self.plugins for name in names)


@dataclass(frozen=True, slots=True)
class Permissions:
    """What one principal may do, from all of its roles."""

    allowed: tuple[Rule, ...] = ()
    denied: tuple[Rule, ...] = ()

    @property
    def ask_for_plugins(self) -> bool:
        """Whether the permissions depend on a connector's plugin."""
        return any(rule.asks_for_plugin for rule in (*self.allowed, *self.denied))

    def may(self, right: Right, target: Target | None = None) -> bool:
        """Return whether the principal has the right; for rights on connectors, on this connector."""
        if right in OF_WORKER:
            return any(right in rule.rights for rule in self.allowed) and not any(
                right in rule.rights for rule in self.denied
            )
        assert target is not None
        return right in self.on(target)

    def on(self, target: Target) -> frozenset[Right]:
        """Return the rights on a connector. Any right implies VIEW; if VIEW is denied, there are none."""
        given = _united(rule.rights for rule in self.allowed if rule.covers(target)) & OF_CONNECTORS
        refused = _united(rule.rights for rule in self.denied if rule.covers(target))
        if not given or Right.VIEW in refused:
            return frozenset()
        return (given | {Right.VIEW}) - refused

    def may_somewhere(self, right: Right, plugins: tuple[str, ...] | None = None) -> bool:
        """Return whether the principal has the right on any connector, or on any connector of this plugin."""
        return any(right in rule.rights and (plugins is None or rule.covers_plugin(plugins)) for rule in self.allowed)

    def refused_overrides(
        self, connector: str | None, plugins: tuple[str, ...], config: Mapping[str, object]
    ) -> list[str]:
        """Return the client settings in a configuration that no role allows for this connector, or for any."""
        allowing = [
            rule
            for rule in self.allowed
            if Right.EDIT in rule.rights
            if (rule.covers_plugin(plugins) if connector is None else rule.covers(Target(connector, plugins)))
        ]
        patterns = {pattern for rule in allowing for pattern in rule.client_overrides}
        return [
            key
            for key in config
            for kind in ClientKind
            if key.startswith(kind.override_prefix)
            and not any(matches_wildcard(pattern, key.removeprefix(kind.override_prefix)) for pattern in patterns)
        ]


EVERYTHING: Final = Permissions((Rule(frozenset(Right)),))
"""The permissions of everybody if no file of roles is configured."""

_OF_WORKERS: Final = Permissions((Rule(frozenset((Right.VIEW, Right.METRICS, Right.CLUSTER))),))
"""The permissions of another worker acting on its own behalf: it reads the state of the tasks that run here."""


@dataclass(frozen=True, slots=True)
class _Role:
    users: tuple[str, ...]
    groups: tuple[str, ...]
    allowed: tuple[Rule, ...]
    denied: tuple[Rule, ...]

    def has(self, principal: Principal) -> bool:
        """Return whether the principal is one of the role's users, or in one of its groups."""
        if any(matches_wildcard(pattern, principal.name) for pattern in self.users):
            return True
        return any(matches_wildcard(pattern, group) for pattern in self.groups for group in principal.groups)


@dataclass(frozen=True, slots=True)
class Roles:
    """All roles; without any, no principal may do anything."""

    roles: tuple[_Role, ...] = ()

    def permissions(self, principal: Principal) -> Permissions:
        """Return the permissions of a principal."""
        own = [role for role in self.roles if role.has(principal)]
        return Permissions(
            tuple(rule for role in own for rule in role.allowed), tuple(rule for role in own for rule in role.denied)
        )

    @staticmethod
    def of_worker() -> Permissions:
        """Return the permissions of another worker of the cluster acting on its own behalf."""
        return _OF_WORKERS


Table: TypeAlias = dict[str, Any]
_KnowsPlugin: TypeAlias = Callable[[str], bool]


def parse_roles(text: str, knows_plugin: _KnowsPlugin = lambda _: True) -> Roles:
    """Parse roles from TOML. Raises :class:`~connect.errors.ConfigError` naming the place of a mistake.

    ``knows_plugin`` says whether a pattern matches any plugin. One that matches none is a mistake: a misspelt denial
    would deny nothing.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _mistake("", f"it is not TOML: {error}") from error
    _check_keys("", document, {"roles"})
    roles = document.get("roles", {})
    if not isinstance(roles, dict):
        raise _mistake("roles", "write each role as a table, [roles.NAME]")
    return Roles(tuple(_role(f"roles.{name}", role, knows_plugin) for name, role in roles.items()))


def _role(where: str, role: object, knows_plugin: _KnowsPlugin) -> _Role:
    table = _table(where, role)
    _check_keys(where, table, {"users", "groups", "allow", "deny"})
    users, groups = _texts(where, table, "users", ()), _texts(where, table, "groups", ())
    if not users and not groups:
        raise _mistake(where, "name its members in users or groups")
    allowed, denied = (_rules(where, table, key, knows_plugin) for key in ("allow", "deny"))
    return _Role(users, groups, allowed, denied)


def _rules(where: str, table: Table, key: str, knows_plugin: _KnowsPlugin) -> tuple[Rule, ...]:
    rules = table.get(key, [])
    if not isinstance(rules, list):
        raise _mistake(f"{where}.{key}", f"write each rule as a table of its own, [[{where}.{key}]]")
    parsed = [_rule(f"{where}.{key}[{number}]", rule, allows=key == "allow") for number, rule in enumerate(rules)]
    for number, rule in enumerate(parsed):
        for pattern in rule.plugins:
            if pattern != _ALL and not knows_plugin(pattern):
                raise _mistake(
                    f"{where}.{key}[{number}].plugins",
                    f"no connector plugin of this worker matches {pattern}, so that the rule would be without effect: "
                    "correct the name (sluice plugins list shows all), or remove it",
                )
    return tuple(parsed)


def _rule(where: str, rule: object, *, allows: bool) -> Rule:
    table = _table(where, rule)
    _check_keys(where, table, {"rights", "connectors", "plugins", *(["client_overrides"] if allows else [])})
    connectors, plugins = _texts(where, table, "connectors", (_ALL,)), _texts(where, table, "plugins", (_ALL,))
    overrides = _texts(where, table, "client_overrides", (_ALL,))
    of_all = _ALL in connectors and _ALL in plugins
    rights: set[Right] = set()
    for name in _texts(where, table, "rights", ()):
        rights |= _named_rights(where, name, of_all=of_all)
    if not rights:
        raise _mistake(where, f"name its rights: some of {', '.join(Right)}, or *")
    implied = _united(_IMPLIED.get(right, frozenset()) for right in rights) if allows else frozenset()
    return Rule(frozenset(rights) | implied, connectors, plugins, overrides)


def _named_rights(where: str, name: str, *, of_all: bool) -> frozenset[Right]:
    if name == _ALL:
        return frozenset(Right) if of_all else OF_CONNECTORS
    if name not in list(Right):
        raise _mistake(where, f"there is no right {name!r}; the rights are {', '.join(Right)}, or *")
    if name in OF_WORKER and not of_all:
        raise _mistake(where, f"{name} concerns no connector: give it in a rule without connectors and plugins")
    return frozenset((Right(name),))


def _table(where: str, value: object) -> Table:
    if not isinstance(value, dict):
        raise _mistake(where, "it must be a table")
    return value


def _texts(where: str, table: Table, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = table.get(key, list(default))
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _mistake(f"{where}.{key}", "it must be a list of strings")
    return tuple(value)


def _check_keys(where: str, table: Table, known: Iterable[str]) -> None:
    if unknown := table.keys() - set(known):
        raise _mistake(where, f"there is no key {min(unknown)!r}; the keys are {', '.join(sorted(known))}")


def _united(sets: Iterable[frozenset[Right]]) -> frozenset[Right]:
    return frozenset().union(*sets)


def _mistake(where: str, what: str) -> ConfigError:
    return ConfigError(_KEY, where or "the file", what[0].upper() + what[1:])
