"""The options of a connection to RabbitMQ, which sources and sinks share."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    between,
    invalid_value,
    non_empty,
    non_empty_list,
    option,
    validator,
)
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError, ConnectError, RetriableError, os_reason
from connect.hosts import HostsConfig
from connect.internals.extras import missing_extra
from connect.kits.http.settings import TlsConfig

if TYPE_CHECKING:
    from pika import ConnectionParameters

__all__ = ["ConnectionConfig", "name_map"]

_LICENCE: Final = UnsupportedKey("it belongs to a licence that is not needed here")
_ALWAYS: Final = UnsupportedKey("a lost connection is always made again, with its consumers", ("", "true"))
_WITHOUT_EFFECT: Final = {
    "confluent.license": _LICENCE,
    "confluent.topic": _LICENCE,
    "confluent.topic.bootstrap.servers": _LICENCE,
    "confluent.topic.replication.factor": _LICENCE,
    "rabbitmq.automatic.recovery.enabled": _ALWAYS,
    "rabbitmq.topology.recovery.enabled": _ALWAYS,
    "rabbitmq.shutdown.timeout.ms": UnsupportedKey("task.shutdown.graceful.timeout.ms of the worker limits it"),
    "rabbitmq.handshake.timeout.ms": UnsupportedKey("rabbitmq.connection.timeout.ms limits the handshake too"),
    "rabbitmq.max.queue.per.task": UnsupportedKey("a task consumes any number of queues"),
}
_LEAST_FRAME_BYTES: Final = 4096
_MOST_FRAME_BYTES: Final = 131_072


def name_map(text: str) -> Mapping[str, str]:
    """Return the pairs of a JSON object whose values are texts; ``ValueError`` says what is wrong."""
    if not text.strip():
        return {}
    try:
        pairs = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"It is no JSON ({error})") from None
    if not isinstance(pairs, dict) or not all(isinstance(value, str) and value for value in pairs.values()):
        raise ValueError("It must be a JSON object of texts")
    return pairs


@validator('JSON object such as {"name": "other name"}')
def names(key: str, value: str) -> None:
    """Refuse what :func:`name_map` cannot read."""
    try:
        name_map(value)
    except ValueError as error:
        raise invalid_value(key, value, str(error)) from None


class ConnectionConfig(HostsConfig, TlsConfig, tls_prefix="rabbitmq.https."):
    """Where RabbitMQ is, and how to sign in."""

    passed_keys = ()
    rabbitmq_host: tuple[str, ...] = option(
        default=("localhost",),
        importance=HIGH,
        validator=non_empty_list,
        doc="The host of RabbitMQ, or several of a cluster: the next one is tried if one does not answer.",
    )
    rabbitmq_port: int = option(
        default=5672, importance=MEDIUM, validator=between(1, 65535), doc="The port for AMQP; with TLS often 5671."
    )
    rabbitmq_username: str = option(default="guest", importance=HIGH, validator=non_empty, doc="The user to sign in.")
    rabbitmq_password: Password = option(default=Password("guest"), importance=HIGH, doc="The password of the user.")
    rabbitmq_virtual_host: str = option(default="/", importance=HIGH, validator=non_empty, doc="The virtual host.")
    rabbitmq_security_protocol: Literal["PLAINTEXT", "SSL"] = option(
        default="PLAINTEXT",
        importance=MEDIUM,
        doc="Whether to connect with TLS (SSL), which the keys rabbitmq.https.ssl.* configure.",
    )
    rabbitmq_connection_timeout_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(0),
        doc="How long connecting and signing in may take at each host. 0: a minute.",
    )
    rabbitmq_requested_heartbeat_seconds: int = option(
        default=60,
        importance=LOW,
        validator=between(0, 3600),
        doc="After how many seconds without a sign of life a connection counts as lost. 0: never.",
    )
    rabbitmq_requested_channel_max: int = option(
        default=0, importance=LOW, validator=between(0, 65535), doc="The most channels to ask for. 0: no limit."
    )
    rabbitmq_requested_frame_max: int = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="The most bytes of a frame to ask for, 4096 to 131072. 0: as many as RabbitMQ suggests.",
    )
    rabbitmq_network_recovery_interval_ms: Long = option(
        default=5_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long to wait before a lost connection is made again, and before a queue that is missing is looked "
        "for again.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        if missing := missing_extra("rabbitmq", "pika"):
            yield ConfigRuleError(missing, "rabbitmq.host")
        if self.rabbitmq_requested_frame_max and not (
            _LEAST_FRAME_BYTES <= self.rabbitmq_requested_frame_max <= _MOST_FRAME_BYTES
        ):
            yield ConfigError(
                "rabbitmq.requested.frame.max",
                self.rabbitmq_requested_frame_max,
                f"It must be 0, or from {_LEAST_FRAME_BYTES} to {_MOST_FRAME_BYTES}",
            )

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each key that has no effect."""
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    @property
    def recovery_seconds(self) -> float:
        """How long to wait before what failed is tried again."""
        return self.rabbitmq_network_recovery_interval_ms / 1000

    @property
    def connection_seconds(self) -> float:
        """How long connecting may take."""
        return (self.rabbitmq_connection_timeout_ms or 60_000) / 1000

    @property
    def place(self) -> str:
        """The server and the virtual host, for people."""
        return f"{','.join(self.rabbitmq_host)}:{self.rabbitmq_port}{self.rabbitmq_virtual_host}"

    def parameters(self) -> Sequence[ConnectionParameters]:
        """Return how to connect to each address of each host that may be reached.

        Raises ``RetriableError`` if none is found, and ``HostDeniedError`` if the worker's rules deny one.
        """
        import pika  # noqa: PLC0415 - the library is loaded only where it is used

        if not (log := logging.getLogger("pika")).level:
            # What it logs about channels and connections that end is reported by those who use them.
            log.setLevel(logging.CRITICAL)
        tls = self.tls_context() if self.rabbitmq_security_protocol == "SSL" else None
        shared: dict[str, Any] = {
            "port": self.rabbitmq_port,
            "virtual_host": self.rabbitmq_virtual_host,
            "credentials": pika.PlainCredentials(self.rabbitmq_username, self.rabbitmq_password.value),
            "heartbeat": self.rabbitmq_requested_heartbeat_seconds,
            "socket_timeout": self.connection_seconds,
            "stack_timeout": self.connection_seconds,
            "connection_attempts": 1,
            "client_properties": {"connection_name": f"sluice {self.originals.get('name') or 'connector'}"},
        }
        if self.rabbitmq_requested_channel_max:
            shared["channel_max"] = self.rabbitmq_requested_channel_max
        if self.rabbitmq_requested_frame_max:
            shared["frame_max"] = self.rabbitmq_requested_frame_max
        found = []
        for host in self.rabbitmq_host:
            options = pika.SSLOptions(tls, host) if tls is not None else None
            found += [
                pika.ConnectionParameters(host=address, ssl_options=options, **shared)
                for address in self._addresses(host)
            ]
        if not found:
            hosts = " nor ".join(self.rabbitmq_host)
            raise RetriableError(f"The host {hosts} cannot be found: correct rabbitmq.host.", self.recovery_seconds)
        return found

    def _addresses(self, host: str) -> Sequence[str]:
        try:
            return self.host_rules.reachable(host, self.rabbitmq_port)
        except UnicodeError as error:
            raise ConnectError(f"{host} is no name of a host: correct rabbitmq.host.") from error
        except OSError as error:
            if len(self.rabbitmq_host) > 1:
                return []
            raise RetriableError(
                f"The host {host} cannot be found ({os_reason(error)}): correct rabbitmq.host.", self.recovery_seconds
            ) from error
