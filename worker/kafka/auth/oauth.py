"""Tokens for SASL/OAUTHBEARER: from an identity provider (client credentials) or, for tests, unsigned."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from connect.config.errors import ConfigRuleError
from connect.config.url import shown_url

__all__ = ["token_provider"]

_TIMEOUT_SECONDS: Final = 2.0
"""Short, because the client does nothing else while it fetches a token."""

_USED_UP: Final = 0.8
_UNSIGNED_SECONDS: Final = 3600


def token_provider(properties: Mapping[str, str]) -> AbstractTokenProvider:
    """Return a token provider for librdkafka's ``sasl.oauthbearer.*`` settings; ``ConfigError`` if unsupported."""
    if (config := properties.get("sasl.oauthbearer.config")) is not None:
        subject = config.removeprefix("principal=")
        return _Tokens(lambda: (_unsigned(subject), _UNSIGNED_SECONDS), {})
    if properties.get("sasl.oauthbearer.method") != "oidc" or "sasl.oauthbearer.client.secret" not in properties:
        raise ConfigRuleError(
            "The group membership of a distributed worker, and requests to delete some offsets of a sink, get tokens "
            "by client credentials only: set sasl.oauthbearer.token.endpoint.url, "
            "sasl.oauthbearer.client.credentials.client.id and sasl.oauthbearer.client.credentials.client.secret",
            "sasl.oauthbearer.jwt.retriever.class",
        )
    pairs = [pair.partition("=") for pair in properties.get("sasl.oauthbearer.extensions", "").split(",") if pair]
    return _Tokens(lambda: _fetched(properties), {name: value for name, _, value in pairs})


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """Returns a token until four fifths of its lifetime are over, then fetches another."""

    def __init__(self, fetch: Callable[[], tuple[str, float]], extensions: Mapping[str, str]) -> None:
        super().__init__()
        self._fetch = fetch
        self._extensions = dict(extensions)
        self._token = ""
        self._until = 0.0

    def token(self) -> str:
        if time.monotonic() >= self._until:
            self._token, lifetime = self._fetch()
            self._until = time.monotonic() + lifetime * _USED_UP
        return self._token

    def extensions(self) -> dict[str, str]:
        return self._extensions


def _unsigned(subject: str) -> str:
    now = int(time.time())
    claims = {"sub": subject, "iat": now, "exp": now + _UNSIGNED_SECONDS}
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _fetched(properties: Mapping[str, str]) -> tuple[str, float]:
    """Fetch a token and its lifetime in seconds; an endpoint that fails is retried, like a broker that is down."""
    try:
        return _asked(properties)
    except (OSError, ValueError, KeyError, TypeError) as error:
        url = shown_url(properties["sasl.oauthbearer.token.endpoint.url"])
        raise KafkaConnectionError(f"No token could be fetched from {url}: {error}") from error


def _asked(properties: Mapping[str, str]) -> tuple[str, float]:
    form = {"grant_type": "client_credentials"}
    if scope := properties.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    credentials = f"{properties['sasl.oauthbearer.client.id']}:{properties['sasl.oauthbearer.client.secret']}"
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked when the settings were read
        properties["sasl.oauthbearer.token.endpoint.url"],
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()},
    )
    context = ssl.create_default_context(
        cafile=properties.get("https.ca.location"), cadata=properties.get("https.ca.pem")
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS, context=context) as response:  # noqa: S310
        answer = json.load(response)
    return str(answer["access_token"]), float(answer.get("expires_in", 300))
