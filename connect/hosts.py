"""Rules for the hosts that connectors may connect to, set in the worker's file and checked by name and by IP address.

A connector's configuration or a server's redirect may point anywhere, including into the worker's own network or to the
address where a cloud hands out the machine's credentials. A plugin whose config inherits :class:`HostsConfig` receives
the worker's rules. It should resolve a name once, pass the addresses to :meth:`HostRules.permitted`, and connect to one
of those returned.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.config import LOW, Config, invalid_value, option, validator
from connect.config.validators import matches_wildcard
from connect.errors import ConnectError

__all__ = [
    "ALLOWED_HOSTS_KEY",
    "DENIED_HOSTS_KEY",
    "HostDeniedError",
    "HostRules",
    "HostsConfig",
    "Resolve",
    "host_list",
]

ALLOWED_HOSTS_KEY: Final = "http.allowed.hosts"
DENIED_HOSTS_KEY: Final = "http.denied.hosts"

Resolve: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]
"""Finds the addresses of a name, as :func:`socket.getaddrinfo` does."""

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_RESERVED: Final[tuple[_Network, ...]] = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",
            "fe80::/10",
            # Metadata services outside the link-local networks: Amazon, Google, Alibaba, Azure.
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
        ),
    )
)
"""Networks where clouds serve credentials: reachable only if the worker's file lists the address."""

_TRANSLATED: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last four bytes are an IPv4 address."""

_LABEL: Final = re.compile(r"[\w*-]+(\.[\w*-]+)*", re.ASCII)
_NUMBERS: Final = re.compile(r"[0-9.*]*[0-9][0-9.*]*")


class HostDeniedError(ConnectError):
    """The worker's rules deny a host."""


@dataclass(frozen=True, slots=True)
class _Rules:
    names: tuple[str, ...]
    networks: tuple[_Network, ...]

    def has_name(self, host: str) -> bool:
        return any(matches_wildcard(pattern, host) for pattern in self.names)

    def has_address(self, address: _Address) -> bool:
        return any(address in network for network in self.networks)


@dataclass(frozen=True, slots=True)
class HostRules:
    """Decides which hosts may be reached. Without any rules, everything but the clouds' metadata addresses is "
    "allowed."""

    allowed: _Rules
    denied: _Rules

    @classmethod
    def of(cls, allowed: Collection[str] = (), denied: Collection[str] = ()) -> HostRules:
        """Make rules from names (``*`` matches any text), addresses and networks."""
        return cls(_rules(allowed), _rules(denied))

    def check_name(self, host: str) -> None:
        """Raise :class:`HostDeniedError` if the name is denied whatever its addresses are."""
        name = _normal(host)
        if self.denied.has_name(name):
            raise HostDeniedError(
                f"Connecting to {host} is not allowed: {DENIED_HOSTS_KEY} in the worker's file denies it."
            )
        if self._needs_allowed_name and not self.allowed.has_name(name):
            raise _not_allowed(host)
        if (address := _address(host)) is not None:
            self.permitted(host, [str(address)])

    def permitted(self, host: str, addresses: Iterable[str]) -> list[str]:
        """Return the addresses of ``host`` that may be reached; raise :class:`HostDeniedError` if none may."""
        first: HostDeniedError | None = None
        found = []
        for text in addresses:
            refusal = self._refusal(host, ipaddress.ip_address(text))
            if refusal is None:
                found.append(text)
            else:
                first = first or refusal
        if not found and first is not None:
            raise first
        return found

    def reachable(self, host: str, port: int, resolve: Resolve = socket.getaddrinfo) -> list[str]:
        """Resolve a host and return the addresses that may be reached; raise :class:`HostDeniedError` if none may.

        Connect to these and not to the name, which may have another address the next time. A name that cannot be
        resolved raises what ``resolve`` does: ``OSError``, or ``UnicodeError`` for one that is no name.
        """
        self.check_name(host)
        answers = resolve(host.strip("[]"), port, type=socket.SOCK_STREAM)
        return self.permitted(host, dict.fromkeys(str(answer[4][0]) for answer in answers))

    def check_all(self, host: str, port: int = 0, resolve: Resolve = socket.getaddrinfo) -> None:
        """Raise :class:`HostDeniedError` if a host, or any of its addresses if it resolves here, may not be reached.

        For clients that resolve the name again themselves, and may connect to any of its addresses.
        """
        self.check_name(host)
        try:
            answers = resolve(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        for answer in answers:
            self.permitted(host, [str(answer[4][0])])

    @property
    def _needs_allowed_name(self) -> bool:
        return bool(self.allowed.names) and not self.allowed.networks

    def _refusal(self, host: str, address: _Address) -> HostDeniedError | None:
        name = _normal(host)
        meanings = list(_meanings(address))
        shown = host if name == str(address) else f"{host} ({address})"
        if self.denied.has_name(name) or any(map(self.denied.has_address, meanings)):
            return HostDeniedError(
                f"Connecting to {shown} is not allowed: {DENIED_HOSTS_KEY} in the worker's file denies it."
            )
        for meaning in meanings:
            if any(meaning in network for network in _RESERVED) and not self._names_reserved(meaning):
                return HostDeniedError(
                    f"Connecting to {shown} is not allowed: it is an address where clouds serve credentials. "
                    f"If that is what you want, add the address to {ALLOWED_HOSTS_KEY} in the worker's file."
                )
        if not (self.allowed.names or self.allowed.networks):
            return None
        if self.allowed.has_name(name) or any(map(self.allowed.has_address, _same(address))):
            return None
        return _not_allowed(shown)

    def _names_reserved(self, address: _Address) -> bool:
        """Return whether a rule lists this reserved address itself; a network as large as 0.0.0.0/0 does not count."""
        return any(
            address in network and any(_is_within(network, reserved) for reserved in _RESERVED)
            for network in self.allowed.networks
        )


@validator("list of host names (with * for any text), addresses and networks such as 10.0.0.0/8")
def host_list(key: str, value: Collection[str]) -> None:
    """Refuse items that are neither a name, an address nor a network."""
    for item in value:
        text = item.strip()
        if _network(text) is not None:
            continue
        if _NUMBERS.fullmatch(text):
            raise invalid_value(key, value, f"{text} is not an address; write a network as 10.0.0.0/8")
        if not _LABEL.fullmatch(_normal(text)):
            raise invalid_value(key, value, f"{text} is not a host: give names without scheme and port, or networks")


class HostsConfig(Config):
    """The hosts that may be reached. The worker sets these options; values in a connector's configuration are "
    "ignored."""

    http_allowed_hosts: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=host_list,
        internal=True,
        doc="Hosts that may be reached. Set by the worker from its own file.",
    )
    http_denied_hosts: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        validator=host_list,
        internal=True,
        doc="Hosts that may not be reached. Set by the worker from its own file.",
    )

    @property
    def host_rules(self) -> HostRules:
        """The rules made from these options."""
        return HostRules.of(self.http_allowed_hosts, self.http_denied_hosts)

    def props_for_tasks(self) -> dict[str, str | None]:
        """Return the properties as given, without the rules: the worker that runs a task adds its own."""
        ruled = (ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY)
        return {key: value for key, value in self.originals.items() if key not in ruled}


def _rules(items: Iterable[str]) -> _Rules:
    names, networks = [], []
    for item in filter(None, (item.strip() for item in items)):
        network = _network(item)
        if network is None:
            names.append(_normal(item))
        else:
            networks.append(network)
    return _Rules(tuple(names), tuple(networks))


def _network(text: str) -> _Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _address(text: str) -> _Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def _normal(host: str) -> str:
    """Return a name in the form in which rules compare it: lower case, ASCII, no trailing dot."""
    text = host.strip("[]").rstrip(".").lower()
    try:
        return text if text.isascii() else text.encode("idna").decode("ascii")
    except UnicodeError:
        return text


def _same(address: _Address) -> Iterator[_Address]:
    """Yield the address, and the IPv4 address that it is mapped from, if any."""
    yield address
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        yield address.ipv4_mapped


def _meanings(address: _Address) -> Iterator[_Address]:
    """Yield every address that a connection to this one may reach, including those embedded by tunnels and "
    "translation."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        if address.is_unspecified:
            yield ipaddress.IPv4Address("127.0.0.1")
        return
    plain = ipaddress.IPv6Address(int(address))
    yield plain
    if plain.is_unspecified:
        yield ipaddress.IPv6Address("::1")
        yield ipaddress.IPv4Address("127.0.0.1")
        return
    inner = [plain.ipv4_mapped, plain.sixtofour, *(plain.teredo or ())]
    if any(plain in network for network in _TRANSLATED):
        inner.append(ipaddress.IPv4Address(int(plain) & 0xFFFFFFFF))
    for embedded in inner:
        if embedded is not None:
            yield from _meanings(embedded)


def _is_within(network: _Network, other: _Network) -> bool:
    if isinstance(network, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return network.subnet_of(other)
    if isinstance(network, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
        return network.subnet_of(other)
    return False


def _not_allowed(shown: str) -> HostDeniedError:
    return HostDeniedError(
        f"Connecting to {shown} is not allowed: {ALLOWED_HOSTS_KEY} in the worker's file does not list it. Add it "
        "there, or correct the URL."
    )
