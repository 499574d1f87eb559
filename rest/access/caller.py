"""The caller of the request that is being answered, for the resources: what it may do, and what of it may be shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flask import g

from connect.config import HIDDEN
from rest.access.stored_configs import StoredConfigs
from worker.errors import ForbiddenError
from worker.security.permissions import EVERYTHING, OF_WORKER, Permissions, Right, Target
from worker.security.principals import Principal

__all__ = ["Caller", "caller"]

_CALLER: Final = "sluice_caller"
_CLASS: Final = "connector.class"
_ALWAYS_SHOWN: Final = ("name", _CLASS, "tasks.max")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has sent the request. Without ``configs`` nobody signs in here, and everybody may do everything.

    ``address`` is where the request came from, even if another worker, ``passed_on_by``, has passed it on.
    """

    principal: Principal | None = None
    permissions: Permissions = EVERYTHING
    configs: StoredConfigs | None = None
    address: str = ""
    passed_on_by: str | None = None

    def become_current(self) -> None:
        """Be the caller of this request from now on."""
        setattr(g, _CALLER, self)

    @property
    def author(self) -> str | None:
        """The name that a change of this caller's is noted with, if it has signed in."""
        return None if self.principal is None else self.principal.name

    def may(self, right: Right, connector: str | None = None) -> bool:
        """Whether the caller has a right, on a connector if it is one on connectors."""
        if self.configs is None or right in OF_WORKER:
            return self.permissions.may(right, None if connector is None else Target(connector))
        assert connector is not None
        return self.permissions.may(right, self._target(connector))

    def require(self, right: Right, connector: str | None = None) -> None:
        """Raise :class:`~worker.errors.ForbiddenError`, which names the right, unless the caller has it."""
        if not self.may(right, connector):
            raise self._refusal(right, connector)

    def require_somewhere(self, right: Right) -> None:
        """Raise :class:`~worker.errors.ForbiddenError` unless the caller has a right on any connector at all."""
        if not self.permissions.may_somewhere(right):
            raise self._refusal(right, None)

    def require_edit(
        self, connector: str | None, given: Mapping[str, Any], before: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse a configuration that the caller may not give to a connector.

        Its plugin and its overrides of client settings must be allowed, and so must the plugin that the connector has
        now. ``before`` are further keys that it has and that stay. Without a name it is only to be validated.
        """
        if self.configs is None:
            return
        config = {key: value for key, value in {**(before or {}), **given}.items() if value is not None}
        plugins = self.configs.plugin_names(config.get(_CLASS))
        if connector is None:
            if not self.permissions.may_somewhere(Right.EDIT, plugins):
                raise self._refusal(Right.EDIT, None)
            self._check_overrides(None, plugins, config)
            return
        target = Target(connector, plugins)
        present = self._target(connector)
        if Right.EDIT not in self.permissions.on(target) or (
            present.plugins and Right.EDIT not in self.permissions.on(present)
        ):
            raise self._refusal(Right.EDIT, connector)
        self._check_overrides(connector, plugins, config)

    def require_patch(self, connector: str, patch: Mapping[str, Any]) -> None:
        """Refuse a patch that makes a configuration of a connector's which the caller may not give to it."""
        if self.configs is not None:
            self.require_edit(connector, patch, self.configs.config(connector))

    def visible(self, connectors: Iterable[str]) -> list[str]:
        """Return those connectors that the caller may view, in their order."""
        if self.configs is None or self.permissions is EVERYTHING:
            return list(connectors)
        return [name for name in connectors if Right.VIEW in self.permissions.on(self._target(name))]

    def rights_on(self, connector: str) -> list[Right]:
        """Return the rights that the caller has on a connector."""
        target = Target(connector) if self.configs is None else self._target(connector)
        given = self.permissions.on(target)
        return [right for right in Right if right in given]

    def worker_rights(self) -> list[Right]:
        """Return the rights that the caller has and that concern no connector."""
        return [right for right in Right if right in OF_WORKER and self.permissions.may(right)]

    def shown_config(self, connector: str, config: Mapping[str, Any], *, of_task: bool = False) -> dict[str, Any]:
        """Return as much of a connector's configuration, or a task's, as the caller may see."""
        if self.configs is None or self.permissions is EVERYTHING:
            return dict(config)
        rights = self.permissions.on(self._target(connector))
        if Right.SECRETS in rights:
            return dict(config)
        if Right.CONFIGS in rights:
            return self.configs.hidden(config, self.configs.config(connector) if of_task else None)
        return {key: config[key] for key in _ALWAYS_SHOWN if key in config}

    def shown_info(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """Return the info of a connector with as much of its configuration as the caller may see."""
        return {**info, "config": self.shown_config(info["name"], info["config"])}

    def restored(self, connector: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a given configuration with the secrets that the caller was shown hidden, and sends back so.

        Tools read a configuration, change a key and write all of it: what they do not see has to stay as it is.
        """
        if self.configs is None or self.permissions is EVERYTHING or not any(map(_holds_hidden, given.values())):
            return dict(given)
        stored = self.configs.config(connector)
        shown = self.shown_config(connector, stored)
        return {
            key: stored[key] if key in stored and shown.get(key) == value else value for key, value in given.items()
        }

    def _target(self, connector: str) -> Target:
        if self.configs is None or not self.permissions.ask_for_plugins:
            return Target(connector)
        return self.configs.target(connector)

    def _check_overrides(self, connector: str | None, plugins: tuple[str, ...], config: Mapping[str, Any]) -> None:
        if refused := self.permissions.refused_overrides(connector, plugins, config):
            where = "" if connector is None else f" of connector {connector}"
            raise ForbiddenError(
                f"{self._name()} may not override client settings{where} with {', '.join(sorted(refused))}. Remove "
                "them, or have client_overrides of a role allow them."
            )

    def _refusal(self, right: Right, connector: str | None) -> ForbiddenError:
        where = "" if connector is None else f" on connector {connector}"
        return ForbiddenError(
            f"{self._name()} lacks the right {right}{where}. Whoever keeps rest.authorization.file can give it."
        )

    def _name(self) -> str:
        return "Nobody" if self.principal is None else self.principal.name


def _holds_hidden(value: object) -> bool:
    return isinstance(value, str) and HIDDEN in value


_EVERYBODY: Final = Caller()


def caller() -> Caller:
    """Return the caller of the request that is being answered."""
    found: Caller = g.get(_CALLER, _EVERYBODY)
    return found
