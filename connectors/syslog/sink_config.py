"""The options of the syslog sink."""

from __future__ import annotations

import ssl
from typing import Final, Literal

from connect.config import HIGH, LOW, MEDIUM, Long, at_least, between, matches, non_empty, option, validator
from connect.config.errors import invalid_value
from connect.hosts import HostsConfig
from connect.kits.http.settings import TlsConfig

__all__ = ["FACILITIES", "SEVERITIES", "SyslogSinkConfig"]

FACILITIES: Final = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp"),
    *("ntp", "security", "console", "solaris-cron"),
    *(f"local{number}" for number in range(8)),
)
SEVERITIES: Final = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_PRINTABLE: Final = r"[!-~]"


def _number(names: tuple[str, ...], value: str) -> int | None:
    text = value.strip().lower()
    if text in names:
        return names.index(text)
    return int(text) if text.isascii() and text.isdigit() and int(text) < len(names) else None


@validator(f"one of {', '.join(FACILITIES)}, or its number")
def _facility(key: str, value: str) -> None:
    """Refuse what is no facility."""
    if _number(FACILITIES, value) is None:
        raise invalid_value(key, value, f"It is none of {', '.join(FACILITIES)}, nor a number from 0 to 23")


@validator(f"one of {', '.join(SEVERITIES)}, or its number")
def _severity(key: str, value: str) -> None:
    """Refuse what is no severity."""
    if _number(SEVERITIES, value) is None:
        raise invalid_value(key, value, f"It is none of {', '.join(SEVERITIES)}, nor a number from 0 to 7")


class SyslogSinkConfig(HostsConfig, TlsConfig, tls_prefix="syslog."):
    """Where to send messages, and what to say where a record does not."""

    passed_keys = ()
    syslog_host: str = option(importance=HIGH, validator=non_empty, doc="The host of the receiver.")
    syslog_port: int = option(
        importance=HIGH, validator=between(1, 65535), doc="The port of the receiver, often 601 or 514, for TLS 6514."
    )
    syslog_protocol: Literal["TCP", "TCPSSL"] = option(
        default="TCP", importance=HIGH, doc="Whether to send over plain TCP, or over TLS (TCPSSL)."
    )
    syslog_facility: str = option(
        default="user",
        importance=MEDIUM,
        validator=_facility,
        doc="The facility of records without a field facility, by its name or number.",
    )
    syslog_severity: str = option(
        default="notice",
        importance=MEDIUM,
        validator=_severity,
        doc="The severity of records without a field level, by its name or number.",
    )
    syslog_app_name: str = option(
        default="sluice",
        importance=MEDIUM,
        validator=matches(_PRINTABLE + "{1,48}", "1 to 48 printable characters of ASCII without blanks"),
        doc="The name of the application for records without a field appName or tag.",
    )
    syslog_host_name: str = option(
        default="",
        importance=LOW,
        validator=matches(_PRINTABLE + "{0,255}", "at most 255 printable characters of ASCII without blanks"),
        doc="The host for records without a field host. By default it is the worker's name.",
    )
    syslog_position_enable: bool = option(
        default=False,
        importance=LOW,
        doc="Whether each message tells its topic, partition and offset as structured data, "
        '[kafka@32473 topic="logs" partition="0" offset="42"], so that the receiver can tell if one comes twice.',
    )
    syslog_message_max_bytes: int = option(
        default=65_536,
        importance=MEDIUM,
        validator=between(480, 16 << 20),
        doc="The most bytes of a message. A longer one is a bad record: a receiver would cut it. rsyslog does so at "
        "8 KiB, unless its maxMessageSize is larger.",
    )
    syslog_timeout_ms: Long = option(
        default=30_000,
        importance=LOW,
        validator=at_least(100),
        doc="How long the receiver may take to accept a connection, or to take what is sent.",
    )
    retry_backoff_ms: Long = option(
        default=1_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long to wait before a receiver that cannot be reached is tried again. It is tried until it can be.",
    )

    @property
    def priority(self) -> tuple[int, int]:
        """The facility and the severity of records that have none."""
        return _number(FACILITIES, self.syslog_facility) or 0, _number(SEVERITIES, self.syslog_severity) or 0

    def sink_tls_context(self) -> ssl.SSLContext | None:
        """The TLS context; ``None`` for plain TCP."""
        return self.tls_context() if self.syslog_protocol == "TCPSSL" else None
