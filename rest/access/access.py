"""Authenticates requests and checks that their senders have the rights they need."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as WsgiResponse

from rest.access.caller import Caller, caller
from rest.access.rights import InBody, Need, Who, need_of
from rest.access.sign_in import NotSignedInError, SignIn
from rest.access.stored_configs import StoredConfigs
from worker.errors import ForbiddenError
from worker.security.permissions import EVERYTHING, OF_WORKER, Permissions, Right, Roles
from worker.security.principals import WORKER_MECHANISM, Principal
from worker.security.request_signatures import InName
from worker.security.watched_file import WatchedFile

__all__ = ["Access", "path_of_rule"]

_REFUSED: Final = "User cannot access the resource."
"""The text of Kafka Connect."""
_CONVERTED: Final = re.compile(r"<(?:(\w+)(?:\([^)]*\))?:)?(\w+)>")
_ONE_OF: Final = "any"
_UI: Final = "/ui"
_SIGN_IN_PAGE: Final = "/ui/sign-in"
_UI_STATIC: Final = "/ui/static/"
_SECURITY_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Access:
    """Admits requests to an app: ``sign_in`` authenticates the caller, the file of ``roles`` gives its rights.

    Without such a file every authenticated caller may do everything. ``health_open`` exempts health probes from
    authentication. ``passed_on`` finds the original caller of a request that another worker has signed. ``page`` is the
    path of the web page as browsers know it.
    """

    def __init__(
        self,
        sign_in: SignIn,
        roles: WatchedFile[Roles] | None,
        configs: StoredConfigs,
        *,
        health_open: bool = False,
        passed_on: Callable[[], InName | None] = lambda: None,
        page: str = _UI,
    ) -> None:
        self.page: Final = page
        self.sign_in: Final = sign_in
        self._roles = roles
        self._configs = configs
        self._health_open = health_open
        self._passed_on = passed_on

    def put_on(self, app: Flask) -> None:
        """Check each request of the app, after routing and before anything else."""
        app.before_request(self._admit)
        app.after_request(_secured)

    def warnings(self) -> list[str]:
        """Return a warning for each broken file of users, tokens or roles; the last valid contents stay in force."""
        broken = [] if self._roles is None or self._roles.fault is None else ["of roles"]
        if self.sign_in.faults():
            broken.append("of users or API tokens")
        return [
            f"The file {which} is broken, so its previous contents stay in force. The worker's log says what is wrong."
            for which in broken
        ]

    def permissions(self, principal: Principal) -> Permissions:
        """Return the permissions of a principal."""
        if principal.mechanism == WORKER_MECHANISM:
            return Roles.of_worker()
        return EVERYTHING if self._roles is None else self._roles.read().permissions(principal)

    def _admit(self) -> WsgiResponse | None:
        """Refuse the request, or continue in the name of its caller."""
        if request.routing_exception is not None or _is_preflight():
            return None
        path = path_of_rule()
        is_page = path == _UI or path.startswith(f"{_UI}/")
        need = _need_of_page(path) if is_page else need_of(path, request.method)
        if need is Who.WORKERS or need is Who.ANYBODY or (need is Who.PROBES and self._health_open):
            return None
        try:
            self._called().become_current()
        except NotSignedInError as error:
            if is_page:
                asked = f"{self.page.removesuffix(_UI)}{request.full_path.rstrip('?')}"
                return redirect(f"{self.page}/sign-in?{urlencode({'next': asked})}", HTTPStatus.SEE_OTHER)
            return _sign_in_first(error)
        self._check(need)
        return None

    def _called(self) -> Caller:
        if (in_name := self._passed_on()) is not None:
            if in_name.principal is None:
                raise NotSignedInError
            permissions = self.permissions(in_name.principal)
            return Caller(in_name.principal, permissions, self._configs, in_name.address, in_name.worker)
        principal = self.sign_in.principal(request)
        return Caller(principal, self.permissions(principal), self._configs, request.remote_addr or "")

    def _check(self, need: Need | None) -> None:
        if need is None:
            raise ForbiddenError(f"{request.method} {request.path} is not available on a worker with authentication.")
        if isinstance(need, InBody):
            caller().require_somewhere(need.right)
        elif isinstance(need, Right):
            connector = None if need in OF_WORKER else (request.view_args or {})["name"]
            caller().require(need, connector)


def path_of_rule() -> str:
    """Return the path of the request as the OpenAPI document has it, with ``{name}`` for a connector's name."""
    values = request.view_args or {}
    rule = "" if request.url_rule is None else request.url_rule.rule
    return _CONVERTED.sub(lambda it: str(values[it[2]]) if it[1] == _ONE_OF else f"{{{it[2]}}}", rule)


def _need_of_page(path: str) -> Need:
    """Return what a page requires: pages show what their caller may see, as the API does."""
    return Who.ANYBODY if path == _SIGN_IN_PAGE or path.startswith(_UI_STATIC) else Who.SIGNED_IN


def _is_preflight() -> bool:
    """Return whether this is a CORS preflight request, with which browsers never send credentials."""
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def _sign_in_first(error: NotSignedInError) -> Response:
    if error.wait:
        answer = Response(_REFUSED, HTTPStatus.TOO_MANY_REQUESTS, mimetype="application/json")
        answer.headers["Retry-After"] = str(int(error.wait))
        return answer
    answer = Response(_REFUSED, HTTPStatus.UNAUTHORIZED, mimetype="application/json")
    if request.method == "OPTIONS":
        answer.mimetype = "text/plain"
    if error.bearer:
        # RFC 6750. Basic authentication sends no such header, as in Kafka Connect: browsers would open a login dialog.
        answer.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    return answer


def _secured(response: Response) -> Response:
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response
