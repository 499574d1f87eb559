"""The addresses where the REST API listens and the address it advertises, decided from the configuration alone."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from connect.config.errors import ConfigRuleError
from connect.config.url import shown_url
from connect.errors import ConfigError
from worker.config.worker import WorkerConfig

__all__ = ["Address", "Listener", "advertised", "parse_listeners"]

_SCHEMES: Final = ("http", "https")
_EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound
_ADVERTISED_LISTENER: Final = "rest.advertised.listener"
_MOST_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class Listener:
    """An address to listen on.

    ``url`` is for display, without user and password; ``host`` is empty for all interfaces; ``port`` is 0 for any free
    port until the server listens.
    """

    url: str
    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Address:
    """The address where others reach a worker; ``path`` is the one under which a relay serves it, such as ``/A/B``."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def url(self) -> str:
        """The base URL, with a trailing slash."""
        return f"{self.scheme}://{self.worker_id}/"

    @property
    def worker_id(self) -> str:
        """The worker id in statuses and logs: ``host:port``, followed by the path."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}{self.path}"


def parse_listeners(key: str, urls: Sequence[str]) -> tuple[Listener, ...]:
    """Parse ``listeners`` or ``admin.listeners``. Raises :class:`~connect.errors.ConfigError` if one is invalid."""
    return tuple(_listener(key, url.strip()) for url in urls)


def advertised(config: WorkerConfig, listeners: Sequence[Listener]) -> Address:
    """Return the advertised address of a worker with these listeners, following Kafka Connect's rules.

    The ``rest.advertised.*`` keys take precedence over the listener, which is the one of ``rest.advertised.listener``,
    else the first http listener, else the first https listener. A host that means all interfaces becomes this machine's
    canonical name. Raises :class:`~connect.errors.ConfigError` if the keys contradict each other.
    """
    scheme = _advertised_scheme(config, listeners)
    listener = next((listener for listener in listeners if listener.scheme == scheme), None)
    port = _advertised_port(config, listener.port if listener else None, scheme, listeners)
    host = (config.rest_advertised_host_name or "").strip() or (listener.host if listener else "")
    return Address(scheme, socket.getfqdn() if host in _EVERY_INTERFACE else host.strip("[]"), port)


def _advertised_scheme(config: WorkerConfig, listeners: Sequence[Listener]) -> str:
    given = (config.rest_advertised_listener or "").strip().lower()
    if given and given not in _SCHEMES:
        raise ConfigError(_ADVERTISED_LISTENER, given, "Use http or https, the scheme of one of the listeners")
    present = {listener.scheme for listener in listeners}
    return given or next(scheme for scheme in _SCHEMES if scheme in present)


def _advertised_port(config: WorkerConfig, own: int | None, scheme: str, listeners: Sequence[Listener]) -> int:
    given = config.rest_advertised_port
    if given is not None and not 0 < given <= _MOST_PORT:
        raise ConfigError("rest.advertised.port", given, f"A port must be between 1 and {_MOST_PORT}")
    port = given if given is not None else own
    if port is None:
        # With a port, this is a worker behind a proxy with the other scheme.
        urls = ",".join(listener.url for listener in listeners)
        raise ConfigRuleError(
            f"{_ADVERTISED_LISTENER} is {scheme}, but listeners ({urls}) has no {scheme}:// URL. Add one, or set "
            "rest.advertised.host.name and rest.advertised.port to the address of the proxy.",
            _ADVERTISED_LISTENER,
        )
    return port


def _listener(key: str, url: str) -> Listener:
    shown = shown_url(url)
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        # The error quotes the invalid text, which may be a password: it is neither shown nor chained.
        raise ConfigError(
            key, shown, f"Not a URL with a port of at most {_MOST_PORT}. Write it as http://localhost:8083"
        ) from None
    if split.scheme.lower() not in _SCHEMES:
        raise ConfigError(key, shown, "A listener must begin with http:// or https://")
    if port is None:
        raise ConfigError(key, shown, "A listener must have a port, as in http://localhost:8083")
    return Listener(shown, split.scheme.lower(), split.hostname or "", port)
