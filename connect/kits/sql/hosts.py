"""The hosts of a database, held to the worker's rules: as they are written, and by their addresses on connecting.

A name is resolved once for each connection, its addresses are checked, and the driver is given one of those, so that a
name with another address the next time gains nothing. The name remains what a certificate is verified for. A Unix
socket counts as ``localhost``. Drivers other than those for PostgreSQL, MySQL and MariaDB resolve names themselves;
theirs are checked just before, and may have no address that is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from connect.config import HIDDEN, Password
from connect.hosts import HostDeniedError, HostRules

__all__ = ["HERE", "SOCKET_OPTION", "Address", "HostGuard", "is_socket", "named_hosts"]

HERE: Final = "localhost"
_HOST_OPTIONS: Final = ("host", "hostaddr")
SOCKET_OPTION: Final = "unix_socket"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is and how to log in. Its text shows no password."""

    driver: str
    """SQLAlchemy's name, such as ``postgresql+psycopg``."""
    hosts: tuple[tuple[str, int | None], ...] = ()
    database: str = ""
    user: str | None = None
    password: Password | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    written: Password = field(default_factory=lambda: Password(""))
    """The password as written in the URL, possibly percent-encoded."""

    @property
    def backend(self) -> str:
        """The kind of database: SQLAlchemy's name, such as ``postgresql``."""
        return self.driver.partition("+")[0]

    @property
    def is_file(self) -> bool:
        """Whether the database is a file."""
        return self.backend == "sqlite"

    def hide(self, text: str) -> str:
        """Return the text without the password, in either of its forms."""
        secrets = {secret.value for secret in (self.password, self.written) if secret is not None and secret.value}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def __str__(self) -> str:
        """Return the database for display: without user, password and options."""
        if self.is_file:
            return self.database
        hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in self.hosts)
        return f"{self.backend}://{hosts}/{self.database}"


def named_hosts(address: Address) -> Iterator[tuple[str, str]]:
    """Yield each host that is named, with the driver's option that names it; the option is empty for the URL's hosts.

    Options that name hosts are possible only if the worker's configuration allows them.
    """
    for host, _ in address.hosts:
        yield "", host
    for option in _HOST_OPTIONS:
        for host in address.options[option].split(",") if option in address.options else ():
            yield option, HERE if is_socket(host) else host
    if SOCKET_OPTION in address.options:
        yield SOCKET_OPTION, HERE


@dataclass(frozen=True, slots=True)
class HostGuard:
    """Checks the hosts of an address against rules, on behalf of the keys that name them."""

    address: Address
    rules: HostRules
    keys: Mapping[str, str]
    """The configuration's key for each of the driver's options that name hosts; others are named by the URL."""

    def denied(self) -> Iterator[tuple[str, str]]:
        """Yield the keys whose hosts are denied as they are written, each with the reason."""
        for option, host in named_hosts(self.address):
            try:
                self.rules.check_name(host)
            except HostDeniedError as error:
                yield self.key(option), str(error)

    def check_addresses(self) -> None:
        """Raise :class:`~connect.hosts.HostDeniedError` if any address of a host is denied."""
        for option, host in named_hosts(self.address):
            self.check_all(option, host)

    def reachable(self, option: str, host: str, port: int) -> list[str]:
        """Return the permitted addresses of a host that an option names."""
        try:
            return self.rules.reachable(host, port)
        except HostDeniedError as error:
            raise self._refused(option, error) from error

    def check_all(self, option: str, host: str) -> None:
        """Raise :class:`~connect.hosts.HostDeniedError` if any address of a host that an option names is denied."""
        try:
            self.rules.check_all(host)
        except HostDeniedError as error:
            raise self._refused(option, error) from error

    def _refused(self, option: str, error: HostDeniedError) -> HostDeniedError:
        return HostDeniedError(f"{self.key(option)}: {error}")

    def key(self, option: str) -> str:
        """Return the key of the configuration that names the host of an option."""
        return self.keys.get(option, "connection.url")


def is_socket(host: str) -> bool:
    """Return whether libpq takes a host for the folder of a Unix socket, or for one without a file; so it takes no
    host.
    """
    return not host or host[0] in "/@"
