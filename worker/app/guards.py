"""The guards of a worker's REST API, made of its file: who may sign in and what they may do."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connect.errors import ConfigError
from rest.access.access import Access, AllowedHosts
from rest.access.guards import Guards
from rest.access.inventory import Inventory
from rest.access.sign_in import SignIn
from worker.config.security import SecurityConfig
from worker.herder.herder import Herder
from worker.security.api_tokens import ApiTokens
from worker.security.certificate_names import NameRules
from worker.security.login_file import users_file
from worker.security.permissions import Roles, parse_roles
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

__all__ = ["GuardPlan"]

logger = logging.getLogger(__name__)
_ROLES_KEY: Final = "rest.authorization.file"


class GuardPlan:
    """The guards that a worker's file asks for. What is wrong with the file is known when this is made.

    ``environ`` are the environment variables. Raises :class:`~connect.errors.ConfigError`.
    """

    def __init__(self, config: SecurityConfig, host: str, environ: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._host = host
        self._sign_in = _sign_in(config, environ) if config.authenticates else None
        self._roles = _roles(config.rest_authorization_file)

    def guards(self, herder: Herder) -> Guards:
        """Make the guards, which ask ``herder`` about connectors."""
        config = self._config
        hosts = AllowedHosts(config.rest_allowed_hosts, self._host) if config.rest_allowed_hosts else None
        if self._sign_in is None:
            return Guards(hosts)
        inventory = Inventory(herder)
        return Guards(
            hosts,
            Access(self._sign_in, self._roles, inventory, health_open=config.rest_authentication_health_open),
        )


def _sign_in(config: SecurityConfig, environ: Mapping[str, str]) -> SignIn:
    users = Users(users_file(config.login_config, environ)) if config.rest_extension_classes else None
    tokens_file = config.rest_authentication_tokens_file
    tokens = ApiTokens(Path(tokens_file)) if tokens_file else None
    names = NameRules.parse(config.ssl_principal_mapping_rules) if config.rest_authentication_certificates else None
    sign_in = SignIn(users=users, tokens=tokens, certificate_names=names)
    for fault in sign_in.faults():
        logger.warning("Until this is mended some cannot sign in: %s", fault)
    return sign_in


def _roles(path: str | None) -> WatchedFile[Roles] | None:
    if path is None:
        return None
    roles: WatchedFile[Roles] = WatchedFile(Path(path), "file of roles", parse_roles, Roles())
    if (fault := roles.fault) is not None:
        raise ConfigError(_ROLES_KEY, path, f"This file is broken: {fault}")
    return roles
