"""The options of the syslog and RELP sources."""

from __future__ import annotations

import codecs
import ssl
import zoneinfo
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    Long,
    Password,
    at_least,
    between,
    invalid_value,
    non_empty,
    option,
    validator,
)
from connect.config.unsupported_keys import UnsupportedKey, without_effect
from connect.errors import ConfigError
from connectors.syslog.certificates import listener_context

__all__ = ["ListenerConfig", "RelpSourceConfig", "SyslogSourceConfig"]

_MEGABYTE: Final = 1 << 20
_QUEUED_DATAGRAMS: Final = 50_000
_QUEUED_BATCHES: Final = 2
_DATAGRAM_BUFFER_BYTES: Final = 8 * _MEGABYTE
_STREAM_BUFFER_BYTES: Final = 128 << 10
_OLD_TOPIC: Final = "syslog"

_LICENCE: Final = UnsupportedKey("it belongs to a licence that is not needed here")
_TUNING: Final = UnsupportedKey("it tunes a library that is not used here")
_WITHOUT_EFFECT: Final = {
    "confluent.license": _LICENCE,
    "confluent.topic": _LICENCE,
    "confluent.topic.bootstrap.servers": _LICENCE,
    "confluent.topic.replication.factor": _LICENCE,
    "syslog.ssl.provider": UnsupportedKey("TLS is OpenSSL's", ("", "jdk", "openssl", "openssl_refcnt")),
    "syslog.backoff.millis": UnsupportedKey("a message is taken when it arrives", ("", "100")),
    "syslog.write.timeout.millis": UnsupportedKey(
        "no message is given up because the queue is full: TCP makes the sender wait for as long as it takes",
        ("", "60000"),
    ),
    "netty.worker.threads": _TUNING,
    "netty.event.group.type": _TUNING,
    "netty.idle.timeout.secs": UnsupportedKey("set syslog.idle.timeout.ms"),
}


@validator("name of an encoding, such as UTF-8 or ISO-8859-1")
def _charset(key: str, value: str) -> None:
    """Refuse an encoding that Python does not know, or that is not one of text."""
    try:
        known = codecs.lookup(value)
    except LookupError:
        raise invalid_value(key, value, "There is no such encoding") from None
    if not getattr(known, "_is_text_encoding", True):
        raise invalid_value(key, value, "It does not encode text")


@validator("name of a time zone, such as Europe/Berlin or UTC; empty for the worker's")
def _time_zone(key: str, value: str) -> None:
    """Refuse a time zone that is not in the database."""
    if value:
        try:
            zoneinfo.ZoneInfo(value)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise invalid_value(key, value, "There is no such time zone") from None


class ListenerConfig(Config):
    """Where to listen, how much to take, and where to publish."""

    passed_keys = ()
    syslog_port: int = option(
        importance=HIGH,
        validator=between(1, 65535),
        doc="The port to listen on. Ports below 1024, such as syslog's 514, need a right of the system: "
        "`setcap cap_net_bind_service=+ep`, or sysctl net.ipv4.ip_unprivileged_port_start=514.",
    )
    syslog_listen_address: str = option(
        default="0.0.0.0",  # noqa: S104 - Confluent's default: senders are elsewhere
        importance=LOW,
        validator=non_empty,
        doc="The address to listen on. :: listens on every address, of IPv4 and IPv6.",
    )
    topic: str = option(default=_OLD_TOPIC, importance=HIGH, validator=non_empty, doc="The topic of all messages.")
    syslog_message_max_bytes: int = option(
        default=65_536,
        importance=MEDIUM,
        validator=between(480, 16 * _MEGABYTE),
        doc="The most bytes of a message. Of a longer one the beginning is published, with the header "
        "syslog.truncated.",
    )
    syslog_queue_batch_size: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many messages are published together, roughly.",
    )
    syslog_queue_max_size: int | None = option(
        default=None,
        importance=LOW,
        validator=at_least(1),
        doc="How many received messages may wait for being published, roughly. While there are as many, nothing more "
        "is received: over TCP the senders wait; over UDP the kernel keeps what its buffer holds, and drops the rest. "
        "By default 50,000 over UDP, and twice syslog.queue.batch.size over TCP, where the senders keep the rest.",
    )
    syslog_queue_max_bytes: int = option(
        default=64 * _MEGABYTE,
        importance=LOW,
        validator=at_least(65_536),
        doc="How many bytes of messages may wait for being published, roughly.",
    )
    syslog_charset: str = option(
        default="UTF-8",
        importance=LOW,
        validator=_charset,
        doc="The encoding of messages. Bytes that are not of this encoding are shown as \\xff, with their number.",
    )
    syslog_time_zone: str = option(
        default="",
        importance=MEDIUM,
        validator=_time_zone,
        doc="The time zone of dates that name none, as in RFC 3164, such as Europe/Berlin. By default it is that of "
        "the worker's system.",
    )
    syslog_unparsed: Literal["publish", "report"] = option(
        default="publish",
        importance=MEDIUM,
        doc="What to do with a line of no known form: publish it with the type UNKNOWN, or report it as a bad record, "
        "so that errors.tolerance decides.",
    )
    syslog_reverse_dns_remote_ip: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a message that names no host gets as its host the sender's name, as the DNS has it.",
    )
    syslog_reverse_dns_cache_ms: Long = option(
        default=60_000, importance=LOW, validator=at_least(0), doc="How long the name of a sender is remembered."
    )
    syslog_max_connections: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many TCP connections may be open at once for each task. Further ones are closed at once.",
    )
    syslog_idle_timeout_ms: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="After how long without a byte a TCP connection is closed. 0: never; dead peers are found by keepalives.",
    )
    syslog_ssl_cert_chain_path: str | None = option(
        default=None, importance=HIGH, doc="For TLS: a PEM file with the listener's certificate and those above it."
    )
    syslog_ssl_key_path: str | None = option(
        default=None, importance=HIGH, doc="For TLS: a PEM file with the private key of the certificate."
    )
    syslog_ssl_key_password: Password | None = option(
        default=None, importance=HIGH, doc="The password of the private key, if it is encrypted."
    )
    syslog_ssl_self_signed_certificate_enable: bool = option(
        default=False,
        importance=MEDIUM,
        doc="For TLS: whether to make a certificate at each start, which no sender can verify. For tests.",
    )
    syslog_ssl_ca_path: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="For TLS: a PEM file with certificates of authorities. Only senders with a certificate of theirs are let "
        "in.",
    )

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        raise NotImplementedError

    @property
    def is_datagram(self) -> bool:
        """Whether messages come as datagrams."""
        return False

    @property
    def most_queued(self) -> int:
        """How many messages may wait: over TCP few, since they are lost if the worker is killed."""
        if self.syslog_queue_max_size is not None:
            return self.syslog_queue_max_size
        return _QUEUED_DATAGRAMS if self.is_datagram else _QUEUED_BATCHES * self.syslog_queue_batch_size

    @property
    def buffer_bytes(self) -> int:
        """How much the kernel may keep for a socket; 0 leaves that to the kernel."""
        return 0

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context of the listener; raises ``ConfigError`` for an unusable file."""
        if not self.uses_tls:
            return None
        return listener_context(
            self.syslog_ssl_cert_chain_path,
            self.syslog_ssl_key_path,
            self.syslog_ssl_key_password.value if self.syslog_ssl_key_password is not None else None,
            self_signed=self.syslog_ssl_self_signed_certificate_enable,
            authorities=self.syslog_ssl_ca_path,
        )

    @property
    def zone(self) -> zoneinfo.ZoneInfo | None:
        """The time zone of dates without one; ``None`` for the system's."""
        return zoneinfo.ZoneInfo(self.syslog_time_zone) if self.syslog_time_zone else None

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for files of TLS that cannot be used."""
        try:
            self.tls_context()
        except ConfigError as error:
            yield error

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each key that has no effect."""
        yield from without_effect(_WITHOUT_EFFECT, self.originals)


class SyslogSourceConfig(ListenerConfig):
    """How to receive syslog by UDP, TCP or TLS."""

    old_keys = {"topic.prefix": "topic"}  # noqa: RUF012

    syslog_listener: Literal["UDP", "TCP", "TCPSSL"] = option(
        default="UDP",
        importance=HIGH,
        doc="How messages come: UDP, TCP, or TCPSSL for TLS. Over TCP each message may be a line, or be preceded by "
        "its length (octet counting); both are understood.",
    )
    syslog_receive_buffer_bytes: int | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(2048),
        doc="How many bytes the kernel should keep until they are received. Over UDP, by default 8 MiB: it allows "
        "net.core.rmem_max at most, unless the worker has the right CAP_NET_ADMIN; a warning says so. Over TCP, by "
        "default 128 KiB for each connection: what it keeps is lost if the worker is killed; more is faster over long "
        "distances.",
    )

    @property
    def buffer_bytes(self) -> int:
        """How much the kernel may keep for a socket."""
        if self.syslog_receive_buffer_bytes is not None:
            return self.syslog_receive_buffer_bytes
        return _DATAGRAM_BUFFER_BYTES if self.is_datagram else _STREAM_BUFFER_BYTES

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.syslog_listener == "TCPSSL"

    @property
    def is_datagram(self) -> bool:
        """Whether messages come as datagrams."""
        return self.syslog_listener == "UDP"


class RelpSourceConfig(ListenerConfig):
    """How to receive syslog by RELP."""

    syslog_listener: Literal["TCP", "TCPSSL"] = option(
        default="TCP", importance=HIGH, doc="Whether RELP comes over plain TCP, or over TLS (TCPSSL)."
    )

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.syslog_listener == "TCPSSL"
