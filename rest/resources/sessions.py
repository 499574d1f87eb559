"""``/whoami`` and ``/session``: the caller and its rights; signing in and out for the web page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from flask import Blueprint, Response, jsonify, redirect, request
from werkzeug.wrappers import Response as WsgiResponse

from connect.errors import NotFoundError
from rest.access.access import Access
from rest.access.caller import Caller, caller
from rest.access.sign_in import COOKIE, SAFE_COOKIE, NotSignedInError, SignedIn, session_secret
from rest.http.body import json_object
from rest.http.timeouts import Patience
from worker.errors import BadRequestError
from worker.herder.connectors.requests import ConnectorRequests

__all__ = ["sessions"]

_FIELDS: Final = frozenset(("user", "password", "token"))
_FORM: Final = "application/x-www-form-urlencoded"


def sessions(access: Access | None, connectors: ConnectorRequests, patience: Patience) -> Blueprint:
    """Create the resources; without ``access`` there is no authentication, and everybody may do everything."""
    blueprint = Blueprint("sessions", __name__)

    @blueprint.get("/whoami")
    def whoami() -> Response:
        names = request.args.getlist("connector") or patience.wait(connectors.names())
        has_session = session_secret(request) is not None and "Authorization" not in request.headers
        return jsonify(_described(caller(), caller().visible(names), has_session=has_session))

    @blueprint.post("/session")
    def begin() -> WsgiResponse:
        if access is None:
            raise NotFoundError("This worker has no authentication.")
        given = _given()
        try:
            signed_in = _signed_in(access, given)
        except NotSignedInError as error:
            return _failed(error, access.page)
        secret = access.sign_in.sessions.begin(signed_in.principal, signed_in.still_holds)
        new = Caller(signed_in.principal, access.permissions(signed_in.principal))
        new.become_current()
        answer = (
            redirect(_next(given, access.page), 303) if _is_form() else jsonify(_described(new, [], has_session=True))
        )
        answer.set_cookie(
            SAFE_COOKIE if request.is_secure else COOKIE,
            secret,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
            path="/",
        )
        return answer

    @blueprint.delete("/session")
    def end() -> WsgiResponse:
        secret = session_secret(request)
        if access is not None and secret is not None:
            access.sign_in.sessions.end(secret)
        answer = Response(status=HTTPStatus.NO_CONTENT)
        answer.delete_cookie(
            SAFE_COOKIE if request.is_secure else COOKIE,
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
            path="/",
        )
        return answer

    return blueprint


def _described(who: Caller, names: list[str], *, has_session: bool) -> dict[str, Any]:
    principal = who.principal
    return {
        "principal": None
        if principal is None
        else {"name": principal.name, "mechanism": principal.mechanism, "groups": list(principal.groups)},
        "session": has_session,
        "rights": who.worker_rights(),
        "connectors": {name: who.rights_on(name) for name in names},
    }


def _is_form() -> bool:
    return request.mimetype == _FORM


def _given() -> dict[str, str]:
    given: dict[str, Any] = request.form.to_dict() if _is_form() else json_object(_FIELDS)
    if not all(isinstance(value, str) for value in given.values()):
        raise BadRequestError("user, password and token must be strings.")
    return given


def _signed_in(access: Access, given: dict[str, str]) -> SignedIn:
    address = request.remote_addr or ""
    if token := given.get("token"):
        return access.sign_in.by_token(token, address)
    if "user" not in given or "password" not in given:
        raise BadRequestError("Send user and password, or token.")
    return access.sign_in.by_password(given["user"], given["password"], address)


def _failed(error: NotSignedInError, page: str) -> WsgiResponse:
    """Answer a wrong password: redirect a form back to the page with a reason, refuse other clients."""
    if _is_form():
        return redirect(f"{page}/sign-in?failed={'wait' if error.wait else 'wrong'}", 303)
    status = HTTPStatus.TOO_MANY_REQUESTS if error.wait else HTTPStatus.UNAUTHORIZED
    message = "Too many attempts have failed." if error.wait else "The user or the password is wrong."
    answer = jsonify({"error_code": int(status), "message": message})
    answer.status_code = status
    if error.wait:
        answer.headers["Retry-After"] = str(int(error.wait))
    return answer


def _next(given: dict[str, str], page: str) -> str:
    """Return the page to continue with, which is always one of this site."""
    wanted = given.get("next", "")
    is_ours = wanted == page or wanted.startswith((f"{page}/", f"{page}?"))
    return wanted if is_ours and "\\" not in wanted and wanted.isprintable() else page
