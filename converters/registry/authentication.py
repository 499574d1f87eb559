"""Authentication against a schema registry: user and password, or a bearer token."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from connect.config.url import HttpUrl
from connect.errors import ConfigError, ConnectError
from converters.registry.config import TOKEN, RegistryConfig

__all__ = ["Authentication", "TokenRequest", "authentication"]

TokenRequest = Callable[[HttpUrl, Mapping[str, str], str], Mapping[str, Any]]
"""Posts a form to a URL with an ``Authorization`` header and returns the JSON object in the response."""

_JAAS: Final = re.compile(r"\b(?P<key>username|password)\s*=\s*(?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|(?P<word>[^\s;\"]+))")
_ESCAPE: Final = re.compile(r"\\(.)")


class Authentication(Protocol):
    """Supplies the headers that identify the client."""

    def headers(self, url: HttpUrl) -> Mapping[str, str]:
        """Return the headers of a request to the registry at ``url``."""


def authentication(config: RegistryConfig, request_token: TokenRequest) -> Authentication:
    """Return the authentication that the options select."""
    if config.bearer_auth_credentials_source == "STATIC_TOKEN":
        assert config.bearer_auth_token is not None
        return _Fixed({"Authorization": f"Bearer {config.bearer_auth_token.value}", **_bearer_headers(config)})
    if config.bearer_auth_credentials_source == "OAUTHBEARER":
        return _ClientCredentials(config, request_token)
    if config.basic_auth_credentials_source == "USER_INFO":
        return _Fixed({"Authorization": _basic(config.user_info)})
    if config.basic_auth_credentials_source == "SASL_INHERIT":
        return _Fixed({"Authorization": _basic(_from_jaas(config))})
    return _FromUrl()


class _Fixed:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def headers(self, url: HttpUrl) -> Mapping[str, str]:  # noqa: ARG002
        return self._headers


class _FromUrl:
    def headers(self, url: HttpUrl) -> Mapping[str, str]:
        return {} if url.user_info is None else {"Authorization": _basic(url.user_info.value)}


class _ClientCredentials:
    """Fetches tokens from an OAuth issuer, and uses each until shortly before it expires."""

    def __init__(self, config: RegistryConfig, request_token: TokenRequest) -> None:
        self._config = config
        self._request_token = request_token
        self._headers: Mapping[str, str] = {}
        self._until = 0.0

    def headers(self, url: HttpUrl) -> Mapping[str, str]:  # noqa: ARG002
        if time.monotonic() >= self._until:
            self._renew()
        return self._headers

    def _renew(self) -> None:
        config = self._config
        issuer, secret = config.issuer, config.bearer_auth_client_secret
        assert issuer is not None
        assert secret is not None
        form = {"grant_type": "client_credentials"}
        if config.bearer_auth_scope is not None:
            form["scope"] = config.bearer_auth_scope
        answer = self._request_token(issuer, form, _basic(f"{config.bearer_auth_client_id}:{secret.value}"))
        token, lifetime = answer.get("access_token"), answer.get("expires_in", 0)
        if not isinstance(token, str) or not TOKEN.fullmatch(token) or not isinstance(lifetime, (int, float)):
            raise ConnectError(
                "The issuer of bearer.auth.issuer.endpoint.url answered without an access_token of one word or "
                "without expires_in: check that it is the token endpoint."
            )
        self._headers = {"Authorization": f"Bearer {token}", **_bearer_headers(config)}
        self._until = time.monotonic() + lifetime - config.bearer_auth_cache_expiry_buffer_seconds


def _bearer_headers(config: RegistryConfig) -> dict[str, str]:
    headers = {
        "target-sr-cluster": config.bearer_auth_logical_cluster,
        "Confluent-Identity-Pool-Id": config.bearer_auth_identity_pool_id,
    }
    return {name: value for name, value in headers.items() if value}


def _basic(user_info: str) -> str:
    return f"Basic {base64.b64encode(user_info.encode()).decode('ascii')}"


def _from_jaas(config: RegistryConfig) -> str:
    text = config.sasl_jaas_config.value if config.sasl_jaas_config is not None else ""
    found = {
        match["key"]: match["word"] if match["text"] is None else _ESCAPE.sub(r"\1", match["text"])
        for match in _JAAS.finditer(text)
    }
    if found.keys() != {"username", "password"}:
        raise ConfigError("sasl.jaas.config", "[hidden]", "SASL_INHERIT needs it to contain a username and a password")
    return f"{found['username']}:{found['password']}"
