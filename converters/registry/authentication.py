"""The settings and credentials of the HTTP client for a schema registry, from the options."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Final

from connect.config import Password
from connect.config.url import HttpUrl
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.kits.http.credentials import (
    ClientCredentials,
    Credentials,
    TokenEndpoint,
    basic,
    basic_authorization,
    bearer,
)
from connect.kits.http.messages import HttpError, RejectedError, TokenError, UntrustedError
from connect.kits.http.retries import status_ranges
from connect.kits.http.settings import ClientSettings
from converters.registry.config import RegistryConfig

__all__ = ["RETRIED", "client_settings", "credentials", "headers_for", "is_untrusted", "issuer_error"]

RETRIED: Final = status_ranges("408,425,429,500,502-504,506-")
"""The statuses after which the same request may succeed later."""

_JAAS: Final = re.compile(r"\b(?P<key>username|password)\s*=\s*(?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|(?P<word>[^\s;\"]+))")
_ESCAPE: Final = re.compile(r"\\(.)")


def client_settings(config: RegistryConfig) -> ClientSettings:
    """Return the settings of the HTTP client."""
    is_encrypted = any(url is not None and url.address.startswith("https:") for url in (*config.urls, config.issuer))
    return ClientSettings(
        config.host_rules,
        # Reading the system's authorities takes time, and is of no use without TLS.
        config.tls_context(trusts_bundle=True) if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        proxy=None if config.proxy is None else Password(config.proxy),
        timeouts=(config.http_connect_timeout_ms / 1000, config.http_read_timeout_ms / 1000),
        follows_redirects=False,
    )


def credentials(config: RegistryConfig) -> Credentials:
    """Return the credentials that are the same for every URL of the registry."""
    if config.bearer_auth_credentials_source == "STATIC_TOKEN":
        assert config.bearer_auth_token is not None
        return bearer(config.bearer_auth_token.value)
    if config.bearer_auth_credentials_source == "OAUTHBEARER":
        return ClientCredentials(_token_endpoint(config))
    if config.basic_auth_credentials_source == "USER_INFO":
        return basic(*_parts(config.user_info))
    if config.basic_auth_credentials_source == "SASL_INHERIT":
        return basic(*_from_jaas(config))
    return Credentials()


def headers_for(config: RegistryConfig, url: HttpUrl) -> Mapping[str, str]:
    """Return the headers that identify the client to one URL of the registry, beside its credentials."""
    if config.bearer_auth_credentials_source:
        return _bearer_headers(config)
    if config.basic_auth_credentials_source not in ("", "URL") or url.user_info is None:
        return {}
    return {"Authorization": basic_authorization(*_parts(url.user_info.value))}


def issuer_error(config: RegistryConfig, error: HttpError) -> ConnectError:
    """Return what to raise when the issuer of tokens has failed."""
    place = f"The issuer of tokens at {config.issuer.address if config.issuer is not None else ''}"
    if isinstance(error, TokenError) and error.status is None:
        return ConnectError(
            "The issuer of bearer.auth.issuer.endpoint.url answered without an access_token of one word or without "
            "expires_in: check that it is the token endpoint."
        )
    if isinstance(error, TokenError):
        return ConnectError(
            f"{place} refuses to issue one (HTTP status {error.status}): check bearer.auth.client.id, "
            "bearer.auth.client.secret and bearer.auth.scope."
        )
    if error.status is not None:
        return RetriableError(f"{place} answers HTTP status {error.status}.")
    if is_untrusted(error):
        return ConnectError(
            f"{place} is not trusted: {error.reason}. Check the schema.registry.ssl keys of the converter."
        )
    return RetriableError(f"{place} does not answer: {error.reason}.")


def is_untrusted(error: HttpError) -> bool:
    """Return whether the failure is an untrusted certificate, for which retrying does not help."""
    return isinstance(error, UntrustedError) and not isinstance(error, RejectedError)


def _token_endpoint(config: RegistryConfig) -> TokenEndpoint:
    issuer, secret = config.issuer, config.bearer_auth_client_secret
    assert issuer is not None
    assert secret is not None

    def use_seconds(expires_in: object) -> float | None:
        if not isinstance(expires_in, (int, float)):
            return None
        return expires_in - config.bearer_auth_cache_expiry_buffer_seconds

    return TokenEndpoint(
        url=issuer.full,
        client_id=config.bearer_auth_client_id or "",
        client_secret=secret,
        scope=config.bearer_auth_scope,
        use_seconds=use_seconds,
        retried_on=RETRIED,
        renewed_on=status_ranges(""),
    )


def _bearer_headers(config: RegistryConfig) -> dict[str, str]:
    headers = {
        "target-sr-cluster": config.bearer_auth_logical_cluster,
        "Confluent-Identity-Pool-Id": config.bearer_auth_identity_pool_id,
    }
    return {name: value for name, value in headers.items() if value}


def _parts(user_info: str) -> tuple[str, str]:
    user, _, password = user_info.partition(":")
    return user, password


def _from_jaas(config: RegistryConfig) -> tuple[str, str]:
    text = config.sasl_jaas_config.value if config.sasl_jaas_config is not None else ""
    found = {
        match["key"]: match["word"] if match["text"] is None else _ESCAPE.sub(r"\1", match["text"])
        for match in _JAAS.finditer(text)
    }
    if found.keys() != {"username", "password"}:
        raise ConfigError("sasl.jaas.config", "[hidden]", "SASL_INHERIT needs it to contain a username and a password")
    return found["username"], found["password"]
