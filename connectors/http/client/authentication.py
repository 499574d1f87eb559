"""Credentials that identify the client to a server. No error or log line shows them (I8)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from connect.config import HIDDEN
from connect.config.url import http_url
from connect.errors import ConnectError
from connectors.http.client.client_config import ClientConfig
from connectors.http.client.messages import NoAnswerError, Request, Response, shown_address
from connectors.http.client.retries import status_ranges

__all__ = ["Authentication", "Sender", "authentication"]

Sender = Callable[[Request], Response]
"""Makes one request, without credentials and without following redirects."""

_EARLY: Final = 30.0
"""Seconds before its end at which a token is renewed, or a tenth of its life if that is less."""

_PASSING: Final = status_ranges("408,425,429,500-")


class Authentication(Protocol):
    """The credentials of a client."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers to add to a request."""

    def url(self, url: str) -> str:
        """Return the URL with the credentials that belong in it."""

    def is_refreshed(self, status: int, sent: Mapping[str, str]) -> bool:
        """Whether the credentials were renewed because this status says that those sent have expired."""

    def hide(self, text: str) -> str:
        """Return the text with every credential in it hidden."""


class _Fixed:
    """Credentials that do not change."""

    def __init__(self, headers: Mapping[str, str], parameter: tuple[str, str] | None, secrets: list[str]) -> None:
        self._headers = dict(headers)
        self._parameter = parameter
        self._secrets = secrets

    def headers(self) -> Mapping[str, str]:
        return self._headers

    def url(self, url: str) -> str:
        if self._parameter is None:
            return url
        return f"{url}{'&' if '?' in url else '?'}{urlencode([self._parameter], quote_via=quote)}"

    def is_refreshed(self, status: int, sent: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False

    def hide(self, text: str) -> str:
        return _hidden(text, self._secrets)


class _ClientCredentials:
    """OAuth 2 tokens, each used until shortly before it expires. Thread-safe."""

    def __init__(self, config: ClientConfig, send: Sender) -> None:
        self._config = config
        self._send = send
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = 0.0
        secret = config.oauth2_client_secret
        self._secrets = [secret.value if secret is not None else ""]
        self._renews = config.token_is_renewed_on

    def headers(self) -> Mapping[str, str]:
        with self._lock:
            if self._token is None or time.monotonic() >= self._until:
                self._renew()
            return self._sent()

    def _sent(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def url(self, url: str) -> str:
        return url

    def is_refreshed(self, status: int, sent: Mapping[str, str]) -> bool:
        if status not in self._renews:
            return False
        with self._lock:
            # Another thread may have a new one already, which is not thrown away.
            if sent == self._sent():
                self._token = None
        return True

    def hide(self, text: str) -> str:
        return _hidden(text, self._secrets)

    def _renew(self) -> None:
        address = shown_address(self._config.token_url or "")
        response = self._send(self._request())
        if response.status in _PASSING:
            raise NoAnswerError(f"The token endpoint {address} answered with HTTP status {response.status}.")
        if not 200 <= response.status < 300:
            raise ConnectError(
                f"The token endpoint {address} refuses to issue a token (HTTP status {response.status}): check "
                "oauth2.client.id, oauth2.client.secret, oauth2.client.scope and oauth2.client.authorization.mode."
            )
        answer = _json_object(response.body)
        token, lifetime = answer.get(self._config.token_property), answer.get("expires_in")
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConnectError(
                f"The token endpoint {address} answered without a token in {self._config.token_property}: check "
                "oauth2.access.token.url and oauth2.response.token.property."
            )
        self._token = token
        # The few last ones: an answer that repeats one may come late.
        self._secrets = [self._secrets[0], *self._secrets[-3:], token]
        self._until = time.monotonic() + _life(lifetime)

    def _request(self) -> Request:
        config, secret = self._config, self._secrets[0]
        form = {config.oauth2_request_grant_type_property: config.oauth2_grant_type}
        if config.oauth2_client_scope:
            form["scope"] = config.oauth2_client_scope
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if config.oauth2_client_authorization_mode.lower() == "url":
            form[config.oauth2_request_client_id_property] = config.oauth2_client_id or ""
            form[config.oauth2_request_client_secret_property] = secret
        else:
            headers["Authorization"] = _basic(config.oauth2_client_id or "", secret)
        url = http_url(config.token_url or "").full
        return Request("POST", url, headers, urlencode(form).encode())


def authentication(config: ClientConfig, send: Sender) -> Authentication:
    """Create the authentication that the options select."""
    if config.auth_type == "OAUTH2":
        return _ClientCredentials(config, send)
    headers, parameter, secrets = dict(config.configured_headers), None, []
    if config.auth_type == "BASIC":
        password = config.basic_password.value
        headers["Authorization"] = _basic(config.basic_user, password)
        secrets = [password, headers["Authorization"].removeprefix("Basic ")]
    elif config.auth_type == "BEARER" and config.http_auth_token is not None:
        secrets = [config.http_auth_token.value]
        headers["Authorization"] = f"Bearer {secrets[0]}"
    elif config.auth_type == "API_KEY" and config.http_auth_api_key is not None:
        secrets = [config.http_auth_api_key.value]
        if config.http_auth_api_key_in == "query":
            parameter = (config.http_auth_api_key_name, secrets[0])
        else:
            headers[config.http_auth_api_key_name] = secrets[0]
    return _Fixed(headers, parameter, [*secrets, *config.configured_headers.values()])


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def _life(lifetime: object) -> float:
    if isinstance(lifetime, str) and lifetime.strip().isdecimal():
        lifetime = float(lifetime)
    if isinstance(lifetime, bool) or not isinstance(lifetime, (int, float)) or not lifetime > 0:
        # Some do not tell; then a refusal does.
        return float("inf")
    return float(lifetime) - min(_EARLY, lifetime / 10)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _hidden(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        # Shorter than that it is no secret, and hiding each of its letters would tell it.
        if len(secret) >= 4:
            for form in {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}:
                text = text.replace(form, HIDDEN)
    return text
