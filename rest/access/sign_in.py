"""Who asks: finds the principal of a request by its credentials."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from werkzeug.wrappers import Request

from rest.server.tls import CLIENT_CERTIFICATE
from worker.security.api_tokens import TOKEN_PREFIX, ApiTokens
from worker.security.attempts import Attempts
from worker.security.certificate_names import NameRules, distinguished_name
from worker.security.principals import Principal
from worker.security.sessions import Sessions
from worker.security.users import Users

__all__ = [
    "COOKIE",
    "SAFE_COOKIE",
    "Bearers",
    "NotSignedInError",
    "SignIn",
    "SignedIn",
    "session_secret",
]

COOKIE: Final = "sluice-session"
SAFE_COOKIE: Final = "__Host-sluice-session"
"""The name of the cookie over https: browsers take it from this host alone, and never send it elsewhere."""

_BASIC: Final = "basic"
_CERTIFICATES: Final = "certificate"


class NotSignedInError(Exception):
    """A request has no credentials that hold; ``wait`` is after how many seconds the next attempt is taken."""

    def __init__(self, *, wait: float = 0, bearer: bool = False) -> None:
        super().__init__()
        self.wait = wait
        self.bearer = bearer


class Bearers(Protocol):
    """Recognises the tokens of an issuer."""

    def principal(self, token: str) -> Principal | None:
        """Who a token stands for; ``None`` if it does not hold."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A principal, and whether its credentials still hold later on, for a session."""

    principal: Principal
    still_holds: Callable[[], bool]


class SignIn:
    """The ways to sign in that a worker's file allows; what is ``None`` is not one of them."""

    def __init__(
        self,
        *,
        users: Users | None = None,
        tokens: ApiTokens | None = None,
        bearers: Bearers | None = None,
        certificate_names: NameRules | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        self.sessions: Final = Sessions()
        self._users = users
        self._tokens = tokens
        self._bearers = bearers
        self._certificate_names = certificate_names
        self._attempts = attempts or Attempts()

    def faults(self) -> list[str]:
        """What is wrong with the files of users and tokens as they are now."""
        return [fault for file in (self._users, self._tokens) if file is not None and (fault := file.fault)]

    def principal(self, request: Request) -> Principal:
        """Return who asks. Raises :class:`NotSignedInError` for nobody that is known.

        Credentials in the header ``Authorization`` count alone if there are any, then a session, then a certificate.
        """
        address = request.remote_addr or ""
        if "Authorization" in request.headers:
            return self._by_header(request.headers["Authorization"], address)
        secret = session_secret(request)
        if secret is not None and (found := self.sessions.principal(secret)) is not None:
            return found
        certificate: Mapping[str, Any] | None = request.environ.get(CLIENT_CERTIFICATE)
        if self._certificate_names is not None and certificate:
            name = self._certificate_names.principal(distinguished_name(certificate))
            if name is not None:
                return Principal(name, _CERTIFICATES)
        raise NotSignedInError

    def by_password(self, user: str, password: str, address: str) -> SignedIn:
        """Return who signs in by a password. Raises :class:`NotSignedInError` if it is wrong, or tried too often."""
        users = self._users
        if users is None:
            raise NotSignedInError
        if not users.remembers(user, password):
            self._let_try(address, user)
            if not users.check(user, password):
                self._attempts.failed(address, user)
                raise NotSignedInError
        stored = users.stored(user)
        return SignedIn(Principal(user, _BASIC), lambda: users.stored(user) == stored)

    def by_token(self, token: str, address: str) -> SignedIn:
        """Return who signs in by a token. Raises :class:`NotSignedInError` if it does not hold."""
        source = self._tokens if token.startswith(TOKEN_PREFIX) else self._bearers
        if source is None:
            raise NotSignedInError
        principal = source.principal(token)
        if principal is None:
            self._let_try(address, "")
            self._attempts.failed(address, "")
            raise NotSignedInError(bearer=True)
        return SignedIn(principal, lambda: source.principal(token) == principal)

    def _by_header(self, header: str, address: str) -> Principal:
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "bearer":
            return self.by_token(value.strip(), address).principal
        if scheme.lower() != _BASIC or (given := _user_and_password(value)) is None:
            raise NotSignedInError
        return self.by_password(*given, address).principal

    def _let_try(self, address: str, user: str) -> None:
        if wait := self._attempts.wait(address, user):
            raise NotSignedInError(wait=wait)


def session_secret(request: Request) -> str | None:
    """Return the secret of the session that a browser sends."""
    return request.cookies.get(SAFE_COOKIE if request.is_secure else COOKIE)


def _user_and_password(value: str) -> tuple[str, str] | None:
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if user and colon else None
