"""The connection to Redis: the keys that the connectors share, and the client made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Long, Password, at_least, between, option
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.internals.extras import missing_extra
from connectors.redis.server import Client, Layout, Line, Server, UnusableUriError, connected, host_problems, server_of

__all__ = ["ConnectionConfig", "missing_client"]

_FILES: Final = ("redis.key.file", "redis.key.cert", "redis.cacert")


def missing_client() -> str | None:
    """Return how to install the client if it is missing."""
    return missing_extra("redis", "redis")


class ConnectionConfig(HostsConfig):
    """Where Redis is, and how to sign in: the keys of Redis's own connectors."""

    passed_keys = ()
    redis_uri: Password = option(
        default=Password(""),
        importance=HIGH,
        doc="The server, such as redis://user:password@host:6379/0. rediss:// uses TLS; "
        "redis-sentinel://host1:26379,host2:26379/0#master asks sentinels; redis-socket:///path is a socket. "
        "Hidden, as it may hold a password.",
    )
    redis_host: str = option(default="localhost", importance=HIGH, doc="The host, if redis.uri is not set.")
    redis_port: int = option(
        default=6379, importance=HIGH, validator=between(1, 65535), doc="The port, if redis.uri is not set."
    )
    redis_cluster: bool = option(default=False, importance=MEDIUM, doc="Whether the server is part of a cluster.")
    redis_username: str = option(default="", importance=MEDIUM, doc="The user; by default that of redis.uri.")
    redis_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password; by default that of redis.uri."
    )
    redis_timeout: Long = option(
        default=60, importance=MEDIUM, validator=at_least(1), doc="How many seconds the server may take to answer."
    )
    redis_pool: int = option(
        default=8,
        importance=LOW,
        validator=at_least(1),
        doc="Without effect: a task has one connection, which keeps the order of its commands.",
    )
    redis_tls: bool = option(default=False, importance=MEDIUM, doc="Whether to use TLS, as rediss:// does.")
    redis_insecure: bool = option(
        default=False, importance=MEDIUM, doc="Whether to accept any certificate of the server: for tests only."
    )
    redis_key_file: str = option(default="", importance=MEDIUM, doc="A PEM file with the client's private key.")
    redis_key_cert: str = option(default="", importance=MEDIUM, doc="A PEM file with the client's certificates.")
    redis_key_password: Password | None = option(
        default=None, importance=MEDIUM, doc="The password of redis.key.file, if it has one."
    )
    redis_cacert: str = option(
        default="", importance=MEDIUM, doc="A PEM file with the trusted authorities; by default the system's."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if missing := missing_client():
            yield ConfigRuleError(missing, "redis.uri")
            return
        yield from self._file_errors()
        try:
            server = self.server
        except UnusableUriError as error:
            problem = f"It is not a URI of Redis: {error}; write redis://user:password@host:6379/0"
            yield ConfigError("redis.uri", "[hidden]", problem)
            return
        key = "redis.uri" if self.redis_uri.value else "redis.host"
        for problem in host_problems(server, self.host_rules):
            yield ConfigRuleError(problem, key)
        if self.redis_cluster and server.database:
            yield ConfigRuleError("A cluster has only database 0: remove the database from redis.uri.", "redis.uri")
        if self.redis_cluster and (server.socket or server.master):
            yield ConfigRuleError("redis.cluster=true requires redis:// or rediss:// in redis.uri.", "redis.uri")

    @property
    def server(self) -> Server:
        """The server; raises :class:`~connectors.redis.server.UnusableUriError`."""
        uri = self.redis_uri.value
        found = server_of(uri) if uri else Server(((self.redis_host, self.redis_port),))
        if "timeout=" not in uri:
            found = replace(found, timeout_seconds=float(self.redis_timeout))
        if self.redis_username:
            found = replace(found, username=self.redis_username)
        if self.redis_password is not None and self.redis_password.value:
            found = replace(found, password=self.redis_password.value)
        return replace(
            found,
            layout=Layout.CLUSTER if self.redis_cluster else found.layout,
            uses_tls=self.redis_tls or found.uses_tls,
            verifies=found.verifies and not self.redis_insecure,
        )

    def client(self, line: Line | None = None) -> Client:
        """Return a new client, whose connection can be held by ``line``."""
        return connected(self.server, self.host_rules, self._tls_files, line)

    def _tls_files(self) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.redis_key_file:
            options |= {"ssl_keyfile": self.redis_key_file, "ssl_certfile": self.redis_key_cert}
            if self.redis_key_password is not None and self.redis_key_password.value:
                options["ssl_password"] = self.redis_key_password.value
        if self.redis_cacert:
            options["ssl_ca_certs"] = self.redis_cacert
        return options

    def _file_errors(self) -> Iterator[ConfigError]:
        if bool(self.redis_key_file) != bool(self.redis_key_cert):
            yield ConfigRuleError(
                "Set redis.key.file and redis.key.cert together, or neither.", "redis.key.file", "redis.key.cert"
            )
        for key in _FILES:
            path = getattr(self, key.replace(".", "_"))
            if path and not Path(path).is_file():
                yield ConfigError(key, path, "There is no such file where the worker runs")
