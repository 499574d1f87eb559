"""Writes every request that changes something or is refused to the audit log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

import orjson
from flask import Flask, Response, g, request

from connect.errors import ConnectError
from rest.access.access import path_of_rule
from rest.access.caller import caller
from rest.access.rights import InBody, Who, need_of
from rest.access.stored_configs import StoredConfigs
from rest.http.body import flag
from worker.security.audit import AuditEntry, AuditKind, AuditLog, changes
from worker.security.permissions import Right
from worker.security.request_signatures import InName

__all__ = ["Auditing", "mark_relayed", "note_changes", "note_connectors"]

logger = logging.getLogger(__name__)
_HARMLESS: Final = ("GET", "HEAD", "OPTIONS")
_ASKING: Final = ("/connector-plugins/{plugin}/config/validate", "/connector-plugins/{plugin}/config/choices")
_REFUSALS: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
_WITH_CONFIG: Final = (InBody(Right.EDIT), Right.DELETE)
_WITH_REQUEST: Final = (Right.OFFSETS, Right.REPLAY, Right.REPAIR, Right.ADMIN, Right.PREVIEW)
_MOST_SHOWN: Final = 4096
_RELAYED: Final = "sluice_relayed"
_BEFORE: Final = "sluice_audit_before"
_CHANGES: Final = "sluice_audit_changes"
_SEVERAL: Final = "sluice_audit_several"
_WHOLE: Final = ("/connectors", "/connectors/{name}/dlq/{record}/repair")
"""Paths whose bodies are read at any length, for the members other than the data."""
_DATA: Final = ("key", "value", "headers")


class Auditing:
    """Records the requests of an app in ``log``. ``passed_on`` finds the original caller of a relayed request."""

    def __init__(self, log: AuditLog, configs: StoredConfigs, passed_on: Callable[[], InName | None]) -> None:
        self._log = log
        self._configs = configs
        self._passed_on = passed_on

    def put_on(self, app: Flask) -> None:
        """Record each admitted request and its answer. Call this after putting the access checks on the app."""
        app.before_request(self._begin)
        app.after_request(self._answered)

    def _begin(self) -> None:
        if request.routing_exception is not None or not _is_change():
            return
        entry = self._entry()
        if need_of(path_of_rule(), request.method) in _WITH_CONFIG and entry.connector is not None:
            setattr(g, _BEFORE, dict(self._configs.config(entry.connector)))
        if self._log.required:
            self._log.begin(entry)

    def _answered(self, response: Response) -> Response:
        if request.routing_exception is not None or g.get(_RELAYED, False):
            return response
        is_refused = response.status_code in _REFUSALS
        if is_refused or _is_change():
            failed = response.status_code >= HTTPStatus.BAD_REQUEST
            kind = AuditKind.REFUSED if is_refused else AuditKind.FAILED if failed else AuditKind.CHANGED
            message = _message(response) if failed else None
            entry = replace(self._entry(), status=response.status_code, message=message)
            if kind is AuditKind.CHANGED:
                entry = replace(entry, changes=self._changes(entry.connector))
            self._log.write(kind, entry)
        return response

    def _entry(self) -> AuditEntry:
        who = caller()
        in_name = self._in_name() if who.principal is None and not _is_of_workers() else None
        need = need_of(path_of_rule(), request.method)
        document = _document() if need in _WITH_REQUEST or need in _WITH_CONFIG else None
        asked = document if need in _WITH_REQUEST else None
        if need is Right.REPAIR and isinstance(document, dict):
            # The record's data appears only as the list of changes, with secrets hidden.
            asked = {member: value for member, value in document.items() if member not in _DATA}
        return AuditEntry(
            principal=who.principal,
            address=in_name.address if in_name else who.address or request.remote_addr or "",
            passed_on_by=in_name.worker if in_name else who.passed_on_by,
            method=request.method,
            path=request.path,
            connector=_connector(document),
            dry_run=flag("dry_run") or (isinstance(document, dict) and document.get("dry_run") is True),
            request=asked,
            reason=request.headers.get("X-Reason"),
        )

    def _in_name(self) -> InName | None:
        """Return the caller that another worker names; ``None`` if its signature is refused."""
        try:
            return self._passed_on()
        except ConnectError:
            return None

    def _changes(self, connector: str | None) -> list[dict[str, Any]]:
        """Return what the request changed; empty if the new configuration cannot be read back."""
        if (noted := g.get(_CHANGES)) is not None:
            return list(noted)
        several: Mapping[str, Mapping[str, Any]] = g.get(_SEVERAL, {})
        if several:
            named = ((name, self._changes_of(name, before)) for name, before in several.items())
            return [{**change, "key": f"{name}: {change['key']}"} for name, found in named for change in found]
        before: Mapping[str, Any] | None = g.get(_BEFORE)
        return [] if before is None or connector is None else self._changes_of(connector, before)

    def _changes_of(self, connector: str, before: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            return changes(before, self._configs.config(connector), self._configs.hidden)
        except ConnectError as error:
            logger.warning(
                "The audit log lacks what was changed in the configuration of connector %s: %s", connector, error
            )
            return []


def note_changes(changes: Sequence[Mapping[str, Any]]) -> None:
    """Give the audit log the changes of this request, secrets hidden, where they do not concern a configuration."""
    setattr(g, _CHANGES, changes)


def note_connectors(before: Mapping[str, Mapping[str, Any]]) -> None:
    """Have the audit log compare these earlier configurations of several connectors with those after this request."""
    setattr(g, _SEVERAL, before)


def mark_relayed() -> None:
    """Note that another worker has answered this request and therefore records it."""
    setattr(g, _RELAYED, True)


def _is_change() -> bool:
    return request.method not in _HARMLESS and path_of_rule() not in _ASKING and not _is_of_workers()


def _is_of_workers() -> bool:
    return need_of(path_of_rule(), request.method) is Who.WORKERS


def _connector(document: Any) -> str | None:
    """Return the connector of the request: from its path, or from the body that creates it."""
    if (named := (request.view_args or {}).get("name")) is not None:
        return str(named).strip()
    if path_of_rule() != "/connectors" or not isinstance(document, dict):
        return None
    config = document.get("config")
    name = document.get("name") or (config.get("name") if isinstance(config, dict) else None)
    return name.strip() if isinstance(name, str) else None


def _document() -> Any:
    """Return the JSON body of the request, if there is one and it is not too long."""
    try:
        body = request.get_data()
        return orjson.loads(body) if body.strip() and (len(body) <= _MOST_SHOWN or path_of_rule() in _WHOLE) else None
    except orjson.JSONDecodeError:
        return None


def _message(response: Response) -> str | None:
    try:
        document = orjson.loads(response.get_data())
    except orjson.JSONDecodeError:
        return response.get_data(as_text=True)[:_MOST_SHOWN] or None
    message = document.get("message") if isinstance(document, dict) else None
    return message[:_MOST_SHOWN] if isinstance(message, str) else None
