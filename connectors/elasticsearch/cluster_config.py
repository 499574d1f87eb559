"""How to reach a cluster of Elasticsearch or OpenSearch, and who signs in there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Password,
    at_least,
    between,
    non_empty_list,
    option,
)
from connect.config.url import http_url
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.kits.http.credentials import Credentials, basic
from connect.kits.http.messages import Request
from connect.kits.http.settings import ClientSettings, Remedies, TlsConfig

__all__ = ["ClusterConfig", "Sign", "proxy_url"]

Sign: TypeAlias = Callable[[Request], Request]
"""Adds a signature to a request."""

_GROUP: Final = "Connection"


class ClusterConfig(HostsConfig, TlsConfig):
    """The connection. Subclasses have the TLS options below a prefix of their own."""

    passed_keys = ()
    connection_url: tuple[str, ...] = option(
        importance=HIGH,
        group=_GROUP,
        validator=non_empty_list,
        doc="URLs of one or more nodes of the cluster, separated by commas, such as "
        "http://node1:9200,http://node2:9200. If a node does not answer, the next one is asked.",
    )
    connection_username: str | None = option(
        default=None, importance=MEDIUM, group=_GROUP, doc="User to sign in as, together with connection.password."
    )
    connection_password: Password | None = option(
        default=None, importance=MEDIUM, group=_GROUP, doc="Password of the user."
    )
    connection_api_key: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_GROUP,
        doc="API key to sign in with, in place of user and password: the field encoded of what the cluster answered "
        "when it made the key.",
    )
    connection_timeout_ms: int = option(
        default=1000,
        importance=LOW,
        group=_GROUP,
        validator=between(0, 43_200_000),
        doc="How long to wait for a connection, in milliseconds; 0 for no limit. Then the next node is tried.",
    )
    read_timeout_ms: int = option(
        default=3000,
        importance=LOW,
        group=_GROUP,
        validator=between(0, 604_800_000),
        doc="How long the cluster may send nothing while an answer is awaited, in milliseconds; 0 for no limit. Then "
        "the request is sent again.",
    )
    max_retries: int = option(
        default=5,
        importance=LOW,
        group=_GROUP,
        validator=at_least(0),
        doc="How often a request is tried again before the task fails.",
    )
    retry_backoff_ms: int = option(
        default=100,
        importance=LOW,
        group=_GROUP,
        validator=between(0, 86_400_000),
        doc="How long to wait before the first retry, in milliseconds. The waits double up to a minute, unless the "
        "cluster asks for another one.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each mistake about the nodes and the credentials."""
        yield from super().check()
        for url in self.connection_url:
            yield from self._url_mistakes(url)
        if (self.connection_username is None) != (self.connection_password is None):
            yield ConfigRuleError(
                "Set both connection.username and connection.password, or neither.",
                "connection.username",
                "connection.password",
            )
        if self.connection_api_key is not None and self.connection_username is not None:
            yield ConfigRuleError(
                "Set connection.api.key, or connection.username and connection.password, not both.",
                "connection.api.key",
                "connection.username",
            )

    def _url_mistakes(self, url: str) -> Iterable[ConfigError]:
        try:
            parsed = http_url(url)
        except ValueError as error:
            yield ConfigRuleError(f"A URL of connection.url is invalid: {error}.", "connection.url")
            return
        if parsed.user_info is not None:
            yield ConfigRuleError(
                "connection.url must not contain a user or password: set connection.username and connection.password.",
                "connection.url",
            )
            return
        try:
            self.host_rules.check_name(urlsplit(url).hostname or "")
        except HostDeniedError as error:
            yield ConfigRuleError(f"connection.url: {error}", "connection.url")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The URLs of the nodes, without a slash at their ends; all are HTTPS if one is."""
        urls = [url.strip().rstrip("/") for url in self.connection_url]
        if any(url.lower().startswith("https:") for url in urls):
            urls = [f"https:{url.partition(':')[2]}" for url in urls]
        return tuple(urls)

    @property
    def credentials(self) -> Credentials:
        """What is sent with each request."""
        if self.connection_api_key is not None:
            key = self.connection_api_key.value
            return Credentials({"Authorization": f"ApiKey {key}"}, secrets=[key])
        if self.connection_username is None or self.connection_password is None:
            return Credentials()
        return basic(self.connection_username, self.connection_password.value)

    @property
    def trusts_any_certificate(self) -> bool:
        """Whether neither the issuer nor the host of certificates is checked."""
        return False

    @property
    def proxy(self) -> Password | None:
        """The URL of the proxy, with its user and password."""
        return None

    def signature(self) -> Sign:
        """Return what signs requests."""
        return lambda request: request

    def client_settings(
        self, connections: int, timeouts: tuple[float, float] | None = None, body_seconds: float = float("inf")
    ) -> ClientSettings:
        """Return the settings of a client with so many connections, with the timeouts of the options by default."""
        return ClientSettings(
            self.host_rules,
            self.tls_context(trusts_all=self.trusts_any_certificate),
            proxy=self.proxy,
            timeouts=timeouts or (_seconds(self.connection_timeout_ms), _seconds(self.read_timeout_ms)),
            body_seconds=body_seconds,
            max_connections=connections,
            follows_redirects=False,
            remedies=Remedies(untrusted=f"Check the {self._tls_prefix}ssl keys, and the hosts of connection.url."),
        )


def _seconds(milliseconds: int) -> float:
    return milliseconds / 1000 if milliseconds else float("inf")


def proxy_url(host: str, port: int, user: str | None, password: Password | None) -> Password | None:
    """Return the URL of a proxy; None without a host."""
    if not host:
        return None
    account = f"{quote(user, safe='')}:{quote(password.value if password else '', safe='')}@" if user else ""
    return Password(f"http://{account}{host}:{port}")
