"""The guards of a worker's REST API, built from its file: who may sign in, and what they may do."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connect.config.validators import matches_wildcard
from connect.errors import ConfigError
from connect.internals.plugins import PluginKind, PluginRegistry
from rest.access.access import Access
from rest.access.auditing import Auditing
from rest.access.guards import AllowedHosts, Guards, RequestRate
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from rest.peers.identities import Identities
from rest.server.limits import Limits
from rest.server.listeners import Address
from worker.config.security import SecurityConfig
from worker.config.worker import WorkerConfig
from worker.herder.herder import Herder
from worker.kafka.clients.audit_topic import AuditTopic
from worker.security.api_tokens import ApiTokens
from worker.security.audit import AuditFile, AuditLog, AuditLogger, AuditSink
from worker.security.certificate_names import NameRules
from worker.security.login_file import users_file
from worker.security.permissions import Roles, parse_roles
from worker.security.redaction import Redaction
from worker.security.request_signatures import InName
from worker.security.users import Users
from worker.security.watched_file import WatchedFile

if TYPE_CHECKING:
    from rest.access.issuer import Issuer

__all__ = ["GuardPlan", "limits_of"]

logger = logging.getLogger(__name__)
_ROLES_KEY: Final = "rest.authorization.file"


class GuardPlan:
    """The guards that a worker's file asks for. Creating it checks the file.

    ``props`` are the worker's properties, ``environ`` the environment variables; ``stack`` receives what must be
    closed. Raises :class:`~connect.errors.ConfigError`.
    """

    def __init__(
        self,
        props: Mapping[str, str],
        address: Address,
        redaction: Redaction,
        stack: ExitStack,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        config = SecurityConfig.parse(props)
        self._config = config
        self._host = address.host
        self._audit = _audit(config, props, address.worker_id, redaction) if config.audits else None
        if self._audit is not None:
            stack.callback(self._audit.close)
        self._sign_in = _sign_in(config, environ) if config.authenticates else None
        self._roles = _roles(config.rest_authorization_file, _ConnectorPlugins(props))

    @property
    def names_callers(self) -> bool:
        """Whether forwarded requests must carry the caller's name."""
        return self._config.authenticates or self._config.audits

    def guards(self, herder: Herder, identities: Identities | None, page: str) -> Guards:
        """Build the guards, with ``herder`` for connectors and ``identities`` for callers of forwarded requests.

        ``page`` is the path of the web page, as browsers see it.
        """
        config, configs = self._config, StoredConfigs(herder)
        passed_on: Callable[[], InName | None] = (lambda: None) if identities is None else identities.in_name
        hosts = AllowedHosts(config.rest_allowed_hosts, self._host) if config.rest_allowed_hosts else None
        per_second, health_open = config.rest_max_requests_per_second, config.rest_authentication_health_open
        rate = RequestRate(per_second, passed_on) if per_second else None
        access = (
            Access(self._sign_in, self._roles, configs, health_open=health_open, passed_on=passed_on, page=page)
            if self._sign_in is not None
            else None
        )
        auditing = Auditing(self._audit, configs, passed_on) if self._audit is not None else None
        return Guards(hosts, rate, access, auditing)


def limits_of(props: Mapping[str, str]) -> Limits:
    """Return the limits of the servers, from a worker's properties."""
    config = SecurityConfig.parse(props)
    return Limits(
        head_bytes=config.rest_max_head_bytes,
        body_bytes=config.rest_max_body_bytes,
        connections=config.rest_max_connections,
    )


def _sign_in(config: SecurityConfig, environ: Mapping[str, str]) -> SignIn:
    users = Users(users_file(config.login_config, environ)) if config.rest_extension_classes else None
    tokens_file = config.rest_authentication_tokens_file
    tokens = ApiTokens(Path(tokens_file)) if tokens_file else None
    names = NameRules.parse(config.ssl_principal_mapping_rules) if config.rest_authentication_certificates else None
    sign_in = SignIn(users=users, tokens=tokens, bearers=_issuer(config), certificate_names=names)
    for fault in sign_in.faults():
        logger.warning("Some users cannot sign in until this is fixed: %s", fault)
    return sign_in


def _issuer(config: SecurityConfig) -> Issuer | None:
    if config.rest_authentication_oidc_issuer is None:
        return None
    from rest.access.issuer import Issuer, IssuerSettings  # noqa: PLC0415 - most workers never need it

    settings = IssuerSettings(
        config.rest_authentication_oidc_issuer,
        config.rest_authentication_oidc_audience,
        config.rest_authentication_oidc_jwks_url,
        config.rest_authentication_oidc_algorithms,
        config.rest_authentication_oidc_principal_claim,
        config.rest_authentication_oidc_groups_claim,
        config.rest_authentication_oidc_clock_skew_ms / 1000,
    )
    return Issuer(settings)


def _audit(config: SecurityConfig, props: Mapping[str, str], worker_id: str, redaction: Redaction) -> AuditLog:
    sinks: list[AuditSink] = []
    if config.audit_file:
        sinks.append(AuditFile(Path(config.audit_file)))
    if config.audit_topic:
        sinks.append(AuditTopic(config.audit_topic, props, waits=config.audit_required))
    if config.audit_log:
        sinks.append(AuditLogger())
    return AuditLog(sinks, worker_id, required=config.audit_required, hide=redaction.hide)


class _ConnectorPlugins:
    """The names by which configurations may call the connector plugins of a worker, which are found when asked for."""

    def __init__(self, props: Mapping[str, str]) -> None:
        self._props = props

    def has_any(self, pattern: str) -> bool:
        """Return whether a plugin matches the pattern, or may match it since it need not be listed."""
        return any(matches_wildcard(pattern, name) for name in self._names) or any(
            matches_wildcard(unlisted, pattern) or matches_wildcard(pattern, unlisted) for unlisted in self._unlisted
        )

    @cached_property
    def _unlisted(self) -> tuple[str, ...]:
        return tuple(WorkerConfig.parse(self._props).plugin_import_allowlist)

    @cached_property
    def _names(self) -> frozenset[str]:
        registry = PluginRegistry.discover(WorkerConfig.parse(self._props).plugin_path or ())
        return frozenset(name for entry in registry.entries(PluginKind.CONNECTOR) for name in entry.names())


def _roles(path: str | None, plugins: _ConnectorPlugins) -> WatchedFile[Roles] | None:
    if path is None:
        return None
    roles: WatchedFile[Roles] = WatchedFile(
        Path(path), "file of roles", lambda text: parse_roles(text, plugins.has_any), Roles()
    )
    if (fault := roles.fault) is not None:
        raise ConfigError(_ROLES_KEY, path, f"This file is invalid: {fault}")
    return roles
