"""Authentication: finds the principal of a request by its credentials."""

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
"""The name of the cookie over https: browsers accept it only from this host, and send it only to this host."""

_BASIC: Final = "basic"
_CERTIFICATES: Final = "certificate"


class NotSignedInError(Exception):
    """A request has no valid credentials; ``wait`` is the number of seconds until the next attempt is accepted."""

    def __init__(self, *, wait: float = 0, bearer: bool = False) -> None:
        super().__init__()
        self.wait = wait
        self.bearer = bearer


class Bearers(Protocol):
    """Verifies the tokens of an issuer."""

    def principal(self, token: str) -> Principal | None:
        """Return the principal of a token; ``None`` if the token is not valid."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A principal, and a check whether its credentials are still valid, for a session."""

    principal: Principal
    still_holds: Callable[[], bool]


class SignIn:
    """The authentication methods that a worker's configuration allows; ``None`` switches a method off."""

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
        """Return what is wrong with the current files of users and tokens."""
        return [fault for file in (self._users, self._tokens) if file is not None and (fault := file.fault)]

    def principal(self, request: Request) -> Principal:
        """Return the principal of a request. Raises :class:`NotSignedInError` if there is none.

        An ``Authorization`` header takes precedence over a session, and a session over a certificate.
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
        """Authenticate by password. Raises :class:`NotSignedInError` if it is wrong, or after too many attempts."""
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
        """Authenticate by token. Raises :class:`NotSignedInError` if the token is not valid."""
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
    """Return the session secret from the browser's cookie."""
    return request.cookies.get(SAFE_COOKIE if request.is_secure else COOKIE)


def _user_and_password(value: str) -> tuple[str, str] | None:
    try:
        text = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    return (user, password) if user and colon else None
