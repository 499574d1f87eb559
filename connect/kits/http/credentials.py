"""Credentials that identify the client to a server. No error or log line shows them (I8)."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from connect.config import HIDDEN, Password
from connect.config.url import http_url
from connect.kits.http.messages import HttpError, NoAnswerError, Request, Response, TokenError, shown_address
from connect.kits.http.retries import StatusRanges, status_ranges

__all__ = [
    "ClientCredentials",
    "Credentials",
    "Sender",
    "TokenEndpoint",
    "basic",
    "basic_authorization",
    "bearer",
    "header",
    "parameter",
]

Sender = Callable[[Request], Response]
"""Makes one request, without credentials and without following redirects."""

_EARLY_SECONDS: Final = 30.0
_WORD: Final = re.compile(r"[!-~]+")
_RETRIED: Final = status_ranges("408,425,429,500-")
_EXPIRED: Final = status_ranges("401")


class Credentials:
    """Credentials that do not change: headers, or parameters of the URL. By default there are none."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self._headers = dict(headers or {})
        self._parameters = dict(parameters or {})
        self._secrets = [*secrets]

    def headers(self, send: Sender) -> Mapping[str, str]:  # noqa: ARG002
        """Return the headers to add to a request. ``send`` is for those that have to be fetched."""
        return self._headers

    def url(self, url: str) -> str:
        """Return the URL with the credentials that belong in it."""
        if not self._parameters:
            return url
        return f"{url}{'&' if '?' in url else '?'}{urlencode(self._parameters, quote_via=quote)}"

    def is_refreshed(self, status: int, sent: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Return whether the credentials are renewed because this status says that those sent have expired."""
        return False

    def hide(self, text: str) -> str:
        """Return the text with every credential in it hidden."""
        return _hidden(text, self._secrets)

    def beside(self, headers: Mapping[str, str]) -> Credentials:
        """Return these credentials with other secret headers, which they take precedence over."""
        secrets = [*self._secrets, *headers.values()]
        return Credentials({**headers, **self._headers}, self._parameters, secrets)


def basic(user: str, password: str) -> Credentials:
    """Return a user and password."""
    value = basic_authorization(user, password)
    return Credentials({"Authorization": value}, secrets=[password, value.removeprefix("Basic ")])


def bearer(token: str) -> Credentials:
    """Return a token."""
    return Credentials({"Authorization": f"Bearer {token}"}, secrets=[token])


def header(name: str, key: str) -> Credentials:
    """Return a key that is sent in a header."""
    return Credentials({name: key}, secrets=[key])


def parameter(name: str, key: str) -> Credentials:
    """Return a key that is sent as a parameter of the URL."""
    return Credentials(parameters={name: key}, secrets=[key])


def basic_authorization(user: str, password: str) -> str:
    """Return the ``Authorization`` header of a user and password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def _most_of_life(expires_in: object) -> float | None:
    """Return the seconds to use a token for: until 30 s before its end, or a tenth of its life if that is less.

    Some servers do not report an expiry; then a refusal triggers the renewal.
    """
    if isinstance(expires_in, str) and expires_in.strip().isdecimal():
        expires_in = float(expires_in)
    if isinstance(expires_in, bool) or not isinstance(expires_in, (int, float)) or not expires_in > 0:
        return float("inf")
    return float(expires_in) - min(_EARLY_SECONDS, expires_in / 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """Where and how to get tokens for OAuth 2 client credentials."""

    url: str
    client_id: str
    client_secret: Password
    scope: str | None = None
    client_in_form: bool = False
    """Whether the client is sent as fields of the form, and not in the ``Authorization`` header."""
    grant_type: str = "client_credentials"
    grant_type_field: str = "grant_type"
    client_id_field: str = "client_id"
    client_secret_field: str = "client_secret"  # noqa: S105 - a field's name
    token_field: str = "access_token"  # noqa: S105 - a field's name
    use_seconds: Callable[[object], float | None] = _most_of_life
    """How long to use a token whose ``expires_in`` is this; ``None`` refuses it."""
    retried_on: StatusRanges = _RETRIED
    """The answers after which the same request may succeed later."""
    renewed_on: StatusRanges = _EXPIRED
    """The answers of the other server that say that a token has expired."""
    client_keys: str = "the client's id and secret"
    """The options to check when the endpoint refuses the client, in words."""
    token_keys: str = "the URL of the endpoint"  # noqa: S105 - a text for errors
    """The options to check when the answer contains no token, in words."""

    def request(self) -> Request:
        """Return the request for a token."""
        form = {self.grant_type_field: self.grant_type}
        if self.scope:
            form["scope"] = self.scope
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self.client_in_form:
            form |= {self.client_id_field: self.client_id, self.client_secret_field: self.client_secret.value}
        else:
            headers["Authorization"] = basic_authorization(self.client_id, self.client_secret.value)
        return Request("POST", http_url(self.url).full, headers, urlencode(form).encode())


class ClientCredentials(Credentials):
    """OAuth 2 tokens, each used until shortly before it expires. Thread-safe.

    Errors of the token endpoint are those of any exchange, or a :class:`TokenError`; ``is_of_token`` marks them.
    """

    def __init__(self, endpoint: TokenEndpoint) -> None:
        super().__init__(secrets=[endpoint.client_secret.value])
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = 0.0

    def headers(self, send: Sender) -> Mapping[str, str]:
        """Return the header with a token, after fetching a new one if that is due."""
        with self._lock:
            if self._token is None or time.monotonic() >= self._until:
                try:
                    self._renew(send)
                except HttpError as error:
                    error.is_of_token = True
                    raise
            return self._sent()

    def is_refreshed(self, status: int, sent: Mapping[str, str]) -> bool:
        """Forget the token that was sent, if the status says that it has expired."""
        if status not in self._endpoint.renewed_on:
            return False
        with self._lock:
            # Another thread may already have fetched a new token, which must be kept.
            if sent == self._sent():
                self._token = None
        return True

    def _sent(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _renew(self, send: Sender) -> None:
        endpoint, address = self._endpoint, shown_address(self._endpoint.url)
        response = send(endpoint.request())
        status = response.status
        if status in endpoint.retried_on:
            raise NoAnswerError(f"The token endpoint {address} answered with HTTP status {status}.", status=status)
        if not 200 <= status < 300:
            raise TokenError(
                f"The token endpoint {address} refuses to issue a token (HTTP status {status}): check "
                f"{endpoint.client_keys}.",
                status=status,
            )
        answer = _json_object(response.body)
        token, seconds = answer.get(endpoint.token_field), endpoint.use_seconds(answer.get("expires_in", 0))
        if seconds is None or not isinstance(token, str) or not _WORD.fullmatch(token):
            raise TokenError(
                f"The token endpoint {address} answered without a token in {endpoint.token_field}: check "
                f"{endpoint.token_keys}."
            )
        self._token = token
        # Keep the last few tokens: an answer that repeats one may come late.
        self._secrets = [self._secrets[0], *self._secrets[-3:], token]
        self._until = time.monotonic() + seconds


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _hidden(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        # Anything shorter is not a secret, and hiding every occurrence would reveal it.
        if len(secret) >= 4:
            for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
                text = text.replace(form, HIDDEN)
    return text
