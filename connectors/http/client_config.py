"""The options shared by the HTTP source and sink: connections, proxy, credentials, retries and limits."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from connect.config import (
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    invalid_value,
    matches,
    option,
    validator,
)
from connect.config.url import http_url
from connect.errors import ConfigError, ConnectError
from connect.hosts import HostDeniedError, HostsConfig
from connect.kits.http.client import HttpClient
from connect.kits.http.credentials import (
    ClientCredentials,
    Credentials,
    TokenEndpoint,
    basic,
    bearer,
    header,
    parameter,
)
from connect.kits.http.messages import Request
from connect.kits.http.retries import status_ranges
from connect.kits.http.settings import ClientSettings, Remedies, TlsConfig

__all__ = ["TOKEN", "ClientConfig", "http_client", "plain_url", "statuses"]

logger = logging.getLogger(__name__)

TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""The name of a header."""

_MEGABYTE: Final = 1 << 20
_REFUSED: Final = frozenset({401, 403, 407})
_AWAY: Final = frozenset({502, 503, 504})
_TLS_ALIASES: Final = {
    "http.ssl.truststore.location": "ssl.truststore.location",
    "http.ssl.truststore.password": "ssl.truststore.password",
    "http.client.keystore": "ssl.keystore.location",
    "http.client.keystore.password": "ssl.keystore.password",
}
"""The keys of other connectors for the same."""

_REMEDIES: Final = Remedies(
    untrusted="Check the https.ssl keys, and that the host of the URL matches its certificate.",
    too_large="request less at a time, or raise http.response.max.bytes.",
    unreadable="Correct the server, or set Accept-Encoding in http.request.headers to what it obeys.",
)


@validator("URL that begins with http:// or https://")
def plain_url(key: str, value: str) -> None:
    """Refuse an invalid URL, and one that contains a user and password, which would be shown."""
    try:
        parsed = http_url(value)
    except ValueError as error:
        raise ConfigRuleError(f"The URL of {key} is invalid: {error}.", key) from None
    if parsed.user_info is not None:
        raise ConfigRuleError(
            f"The URL of {key} contains a user or password: set http.auth.type=BASIC, http.auth.user and "
            "http.auth.password instead.",
            key,
        )


@validator("list of HTTP statuses and ranges such as 404,500..599 or 500-")
def statuses(key: str, value: str) -> None:
    """Refuse an invalid list of HTTP statuses."""
    try:
        status_ranges(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from error


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _secret(doc: str) -> Any:
    return option(default=None, importance=MEDIUM, doc=doc)


class _HttpsConfig(TlsConfig, tls_prefix="https.", tls_aliases=_TLS_ALIASES, empty_is_unset=True):
    """The TLS options. An empty value is the default of the Java connectors."""

    http_ssl_trust_all_certs: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to accept any certificate, from any issuer and for any host. Anyone on the network path can then "
        "read and change everything: for tests only.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for certificates to trust where any is accepted."""
        yield from super().check()
        if self.http_ssl_trust_all_certs and any(name.startswith("https.ssl.truststore.") for name in self.tls_props()):
            yield ConfigRuleError(
                "http.ssl.trust.all.certs accepts any certificate, and https.ssl.truststore says which to accept: "
                "remove one of them.",
                "http.ssl.trust.all.certs",
            )


class ClientConfig(HostsConfig, _HttpsConfig):
    """How to connect to servers."""

    passed_keys = ()
    http_auth_type: str = option(
        default="NONE",
        importance=MEDIUM,
        ignore_case=True,
        validator=matches(
            "(?i)NONE|BASIC|BEARER|API_KEY|OAUTH2", "one of NONE, BASIC, BEARER, API_KEY, OAUTH2 (in any case)"
        ),
        doc="Authentication: NONE, BASIC (http.auth.user and http.auth.password), BEARER (http.auth.token), API_KEY "
        "(http.auth.api.key) or OAUTH2 (a token from oauth2.access.token.url, renewed before it expires). "
        "Credentials are sent only to the host of the configured URL, never to another host that it redirects to.",
    )
    http_auth_user: str = option(default="", importance=MEDIUM, doc="The user of BASIC authentication.")
    http_auth_password: Password = option(
        default=Password(""), importance=MEDIUM, doc="The password of BASIC authentication."
    )
    http_auth_token: Password | None = _secret("The token of BEARER.")
    http_auth_api_key: Password | None = _secret("The key of API_KEY.")
    http_auth_api_key_name: str = option(
        default="X-API-Key", importance=LOW, doc="The name of the header or URL parameter for the API key."
    )
    http_auth_api_key_in: str = option(
        default="header",
        importance=LOW,
        validator=matches("header|query", "one of header, query"),
        doc="Where to send the API key: in a header, or as a URL parameter.",
    )
    oauth2_access_token_url: str | None = option(
        default=None, importance=MEDIUM, validator=plain_url, doc="The URL of the OAUTH2 token endpoint."
    )
    oauth2_token_url: str | None = option(
        default=None, importance=LOW, validator=plain_url, doc="Alias of oauth2.access.token.url."
    )
    oauth2_client_id: str | None = option(default=None, importance=MEDIUM, doc="The client id for OAUTH2.")
    oauth2_client_secret: Password | None = _secret("The client's secret for OAUTH2.")
    oauth2_client_scope: str | None = option(default=None, importance=LOW, doc="The scope to request.")
    oauth2_grant_type: str = option(default="client_credentials", importance=LOW, doc="The grant type to request.")
    oauth2_request_grant_type_property: str = option(
        default="grant_type", importance=LOW, doc="The parameter name of the grant type in token requests."
    )
    oauth2_request_client_id_property: str = option(
        default="client_id", importance=LOW, doc="The parameter name of the client id in token requests."
    )
    oauth2_request_client_secret_property: str = option(
        default="client_secret", importance=LOW, doc="The parameter name of the client secret in token requests."
    )
    oauth2_client_authorization_mode: str = option(
        default="header",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)header|url", "one of header, url"),
        doc="How to send client id and secret to the token endpoint: header (basic authentication) or url (form "
        "fields in the body).",
    )
    oauth2_response_token_property: str = option(
        default="access_token", importance=LOW, doc="The name of the token in the token endpoint's answer."
    )
    oauth2_token_property: str | None = option(
        default=None, importance=LOW, doc="Alias of oauth2.response.token.property."
    )
    oauth2_token_renew_on_status_codes: str = option(
        default="401",
        importance=LOW,
        validator=statuses,
        doc="Statuses after which the client requests a new token and repeats the request once.",
    )
    http_client_proxy_host: str = option(
        default="",
        importance=MEDIUM,
        doc="Host of the proxy; empty for none. Proxies from the environment are not used.",
    )
    http_client_proxy_port: int = option(
        default=3128, importance=MEDIUM, validator=between(1, 65535), doc="Port of the proxy."
    )
    http_client_proxy_username: str = option(default="", importance=MEDIUM, doc="User name for the proxy.")
    http_client_proxy_password: Password = option(
        default=Password(""), importance=MEDIUM, doc="Password for the proxy."
    )
    http_client_connection_timeout_millis: Long = option(
        default=10_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Timeout for establishing a connection, in milliseconds.",
    )
    http_client_read_timeout_millis: Long = option(
        default=30_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="How long a server may send nothing while the connector waits for its answer, in milliseconds.",
    )
    http_client_body_timeout_millis: Long = option(
        default=300_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long a server may take to send a complete answer, in milliseconds.",
    )
    http_response_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=between(1, 1 << 30),
        doc="Maximum size of an answer's body in bytes, after decompression. A larger one is not read.",
    )
    max_retries: int | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(-1),
        doc="How often to retry a request; -1 means forever. By default the source retries forever, a sink with "
        "http.url once, and a sink with http.api.url 10 times.",
    )
    retry_backoff_ms: int = option(
        default=3000,
        importance=MEDIUM,
        validator=at_least(0),
        doc="How long to wait before the first retry, in milliseconds, unless the server specifies it with "
        "Retry-After.",
    )
    retry_backoff_max_ms: int = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        doc="Maximum wait before a retry, in milliseconds; the waits double up to it. A wait requested by the server "
        "with Retry-After may be longer.",
    )
    http_user_agent: str = option(
        default="sluice", importance=LOW, doc="The User-Agent header.", validator=matches(r"[\x20-\x7e]*", "ASCII text")
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each missing credential."""
        yield from super().check()
        needed: tuple[tuple[str, object], ...] = ()
        match self.auth_type:
            case "BASIC":
                needed = (("http.auth.user", self.basic_user),)
            case "BEARER":
                needed = (("http.auth.token", self.http_auth_token),)
            case "API_KEY":
                needed = (("http.auth.api.key", self.http_auth_api_key),)
                if self.http_auth_api_key_in == "header" and not TOKEN.fullmatch(self.http_auth_api_key_name):
                    yield invalid_value(
                        "http.auth.api.key.name", self.http_auth_api_key_name, "It is not the name of a header"
                    )
            case "OAUTH2":
                needed = (
                    ("oauth2.access.token.url", self.token_url),
                    ("oauth2.client.id", self.oauth2_client_id),
                    ("oauth2.client.secret", self.oauth2_client_secret),
                )
        for key, value in needed:
            if not value:
                yield ConfigRuleError(f"{key} must be set for the authentication {self.auth_type}.", key)

        yield from self._host_errors()

    def urls(self) -> Iterable[tuple[str, str]]:
        """Yield the keys that hold URLs, with the parts of the URLs that name their hosts."""
        if self.token_url:
            yield "oauth2.access.token.url" if self.oauth2_access_token_url else "oauth2.token.url", self.token_url

    def check_system(self) -> Iterable[ConfigError]:
        """Send HEAD to each server, and yield an error if it cannot be reached or refuses the credentials.

        The part of a URL that records fill in is left out. What else a server answers is not judged: many do not know
        HEAD, or not at this place.
        """
        client = http_client(self)
        try:
            for key, url in self.urls():
                if url != self.token_url:
                    yield from self._server_errors(client, key, url)
        finally:
            client.close()

    def _server_errors(self, client: HttpClient, key: str, url: str) -> Iterable[ConfigError]:
        fixed = {name: value for name, value in self.written_headers() if "${" not in value}
        request = Request("HEAD", _with_parameters(url.strip().partition("${")[0], self.written_parameters()), fixed)
        try:
            status = client.send(request, keep=0).status
        except ConnectError as error:
            yield ConfigRuleError(client.hide(str(error)), key)
            return
        if status in _REFUSED:
            yield ConfigRuleError(
                f"{request.shown} answers with status {status}: correct http.auth.type={self.auth_type} and its "
                "credentials, or grant them the right.",
                key,
            )
        elif status in _AWAY:
            yield ConfigRuleError(f"{request.shown} answers with status {status}: its server is not there now.", key)

    def _host_errors(self) -> Iterable[ConfigError]:
        """Yield an error for each host denied by name in the worker's rules; addresses are checked on connecting."""
        proxy = [("http.client.proxy.host", self.proxy_place[0])] if self.proxy_place[0] else []
        for key, host in (*proxy, *((key, _host(url)) for key, url in self.urls())):
            if host is None:
                continue
            try:
                self.host_rules.check_name(host)
            except HostDeniedError as error:
                yield ConfigRuleError(f"{key}: {error}", key)

    @property
    def auth_type(self) -> str:
        """NONE, BASIC, BEARER, API_KEY or OAUTH2."""
        return self.http_auth_type.upper()

    @property
    def basic_user(self) -> str:
        """The user of basic authentication."""
        return self.http_auth_user

    @property
    def basic_password(self) -> Password:
        """The password of basic authentication."""
        return self.http_auth_password

    @property
    def token_url(self) -> str | None:
        """The token endpoint."""
        return self.oauth2_access_token_url or self.oauth2_token_url

    @property
    def _token_endpoint(self) -> TokenEndpoint:
        return TokenEndpoint(
            url=self.token_url or "",
            client_id=self.oauth2_client_id or "",
            client_secret=self.oauth2_client_secret or Password(""),
            scope=self.oauth2_client_scope,
            client_in_form=self.oauth2_client_authorization_mode.lower() == "url",
            grant_type=self.oauth2_grant_type,
            grant_type_field=self.oauth2_request_grant_type_property,
            client_id_field=self.oauth2_request_client_id_property,
            client_secret_field=self.oauth2_request_client_secret_property,
            token_field=self.oauth2_token_property or self.oauth2_response_token_property,
            renewed_on=status_ranges(self.oauth2_token_renew_on_status_codes),
            client_keys="oauth2.client.id, oauth2.client.secret, oauth2.client.scope and "
            "oauth2.client.authorization.mode",
            token_keys="oauth2.access.token.url and oauth2.response.token.property",  # noqa: S106 - names of keys
        )

    @property
    def credentials(self) -> Credentials:
        """The credentials that the options select."""
        if self.auth_type == "OAUTH2":
            return ClientCredentials(self._token_endpoint)
        return self._fixed_credentials.beside(self.configured_headers)

    @property
    def _fixed_credentials(self) -> Credentials:
        if self.auth_type == "BASIC":
            return basic(self.basic_user, self.basic_password.value)
        if self.auth_type == "BEARER" and self.http_auth_token is not None:
            return bearer(self.http_auth_token.value)
        if self.auth_type == "API_KEY" and self.http_auth_api_key is not None:
            send = parameter if self.http_auth_api_key_in == "query" else header
            return send(self.http_auth_api_key_name, self.http_auth_api_key.value)
        return Credentials()

    def written_headers(self) -> list[tuple[str, str]]:
        """Return the headers as configured, which records may fill in."""
        return []

    def written_parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the URL as configured, which records may fill in."""
        return []

    @property
    def configured_headers(self) -> dict[str, str]:
        """Secret headers that are sent with every request to the host of the configured URL."""
        return {}

    @property
    def proxy_place(self) -> tuple[str, int]:
        """The host and the port of the proxy; the host is empty if there is none."""
        return self.http_client_proxy_host, self.http_client_proxy_port

    @property
    def proxy_user(self) -> tuple[str, str]:
        """The user and password for the proxy."""
        return self.http_client_proxy_username, self.http_client_proxy_password.value

    @property
    def proxy(self) -> Password | None:
        """The URL of the proxy including the password; ``None`` if there is none."""
        host, port = self.proxy_place
        if not host:
            return None
        user, password = (quote(part, safe="") for part in self.proxy_user)
        place = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return Password(f"http://{user}:{password}@{place}:{port}" if user else f"http://{place}:{port}")

    @property
    def timeouts(self) -> tuple[float, float]:
        """The seconds to wait for a connection, and for the next part of an answer."""
        return self.http_client_connection_timeout_millis / 1000, self.http_client_read_timeout_millis / 1000


def _with_parameters(url: str, parameters: Iterable[tuple[str, str]]) -> str:
    """Return a URL with those of the parameters that no record fills in."""
    query = urlencode([(name, value) for name, value in parameters if "${" not in value])
    return url if not query else f"{url}{'&' if '?' in url else '?'}{query}"


def http_client(config: ClientConfig, most_connections: int = 1) -> HttpClient:
    """Create the client of a connector."""
    if config.http_ssl_trust_all_certs:
        logger.warning("http.ssl.trust.all.certs=true: anyone on the network path can read and change everything.")
    settings = ClientSettings(
        config.host_rules,
        config.tls_context(trusts_all=config.http_ssl_trust_all_certs),
        proxy=config.proxy,
        timeouts=config.timeouts,
        body_seconds=config.http_client_body_timeout_millis / 1000,
        max_bytes=config.http_response_max_bytes,
        max_connections=most_connections,
        user_agent=config.http_user_agent,
        remedies=_REMEDIES,
    )
    return HttpClient(settings, config.credentials)
