"""The caller of the current request: what it may do, and how much of a configuration it may see."""

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
    """The sender of a request. Without ``configs`` the worker has no authentication, and everybody may do everything.

    ``address`` is where the request originally came from, even if another worker, ``passed_on_by``, has relayed it.
    """

    principal: Principal | None = None
    permissions: Permissions = EVERYTHING
    configs: StoredConfigs | None = None
    address: str = ""
    passed_on_by: str | None = None

    def become_current(self) -> None:
        """Make this the caller of the current request."""
        setattr(g, _CALLER, self)

    @property
    def author(self) -> str | None:
        """The name recorded as the author of a change; ``None`` without authentication."""
        return None if self.principal is None else self.principal.name

    def may(self, right: Right, connector: str | None = None) -> bool:
        """Return whether the caller has a right; ``connector`` is required for rights on connectors."""
        if self.configs is None or right in OF_WORKER:
            return self.permissions.may(right, None if connector is None else Target(connector))
        assert connector is not None
        return self.permissions.may(right, self._target(connector))

    def require(self, right: Right, connector: str | None = None) -> None:
        """Raise :class:`~worker.errors.ForbiddenError`, naming the right, if the caller lacks it."""
        if not self.may(right, connector):
            raise self._refusal(right, connector)

    def require_somewhere(self, right: Right) -> None:
        """Raise :class:`~worker.errors.ForbiddenError` unless the caller has the right on at least some connectors."""
        if not self.permissions.may_somewhere(right):
            raise self._refusal(right, None)

    def require_edit(
        self, connector: str | None, given: Mapping[str, Any], before: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse a configuration that the caller may not give to a connector.

        The caller needs the right for the plugin given and for the plugin that the connector has now, and its overrides
        of client settings must be allowed. ``before`` are keys that the connector keeps. Without a connector name the
        configuration is only validated.
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
        """Refuse a patch that results in a configuration that the caller may not give to the connector."""
        if self.configs is not None:
            self.require_edit(connector, patch, self.configs.config(connector))

    def visible(self, connectors: Iterable[str]) -> list[str]:
        """Return the connectors that the caller may view, in the given order."""
        if self.configs is None or self.permissions is EVERYTHING:
            return list(connectors)
        return [name for name in connectors if Right.VIEW in self.permissions.on(self._target(name))]

    def rights_on(self, connector: str) -> list[Right]:
        """Return the caller's rights on a connector."""
        target = Target(connector) if self.configs is None else self._target(connector)
        given = self.permissions.on(target)
        return [right for right in Right if right in given]

    def worker_rights(self) -> list[Right]:
        """Return the caller's rights that concern no connector."""
        return [right for right in Right if right in OF_WORKER and self.permissions.may(right)]

    def shown_config(self, connector: str, config: Mapping[str, Any], *, of_task: bool = False) -> dict[str, Any]:
        """Return the part of a connector's or a task's configuration that the caller may see."""
        if self.configs is None or self.permissions is EVERYTHING:
            return dict(config)
        rights = self.permissions.on(self._target(connector))
        if Right.SECRETS in rights:
            return dict(config)
        if Right.CONFIGS in rights:
            return self.configs.hidden(config, self.configs.config(connector) if of_task else None)
        return {key: config[key] for key in _ALWAYS_SHOWN if key in config}

    def shown_info(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """Return the info of a connector, with the part of its configuration that the caller may see."""
        return {**info, "config": self.shown_config(info["name"], info["config"])}

    def restored(self, connector: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a given configuration in which secrets that were shown hidden have their stored values again.

        Tools read a configuration, change one key and write all of it back: the keys they cannot see must not change.
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
                "these keys, or allow them with client_overrides in a role."
            )

    def _refusal(self, right: Right, connector: str | None) -> ForbiddenError:
        where = "" if connector is None else f" on connector {connector}"
        return ForbiddenError(
            f"{self._name()} lacks the right {right}{where}. An administrator can grant it in rest.authorization.file."
        )

    def _name(self) -> str:
        return "Nobody" if self.principal is None else self.principal.name


def _holds_hidden(value: object) -> bool:
    return isinstance(value, str) and HIDDEN in value


_EVERYBODY: Final = Caller()


def caller() -> Caller:
    """Return the caller of the current request."""
    found: Caller = g.get(_CALLER, _EVERYBODY)
    return found
