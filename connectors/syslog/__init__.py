"""Syslog: sources for UDP, TCP, TLS and RELP."""

from connectors.syslog.source import (
    RelpSourceConnector,
    RelpSourceTask,
    SyslogSourceConnector,
    SyslogSourceTask,
)
from connectors.syslog.source_config import RelpSourceConfig, SyslogSourceConfig

__all__ = [
    "RelpSourceConfig",
    "RelpSourceConnector",
    "RelpSourceTask",
    "SyslogSourceConfig",
    "SyslogSourceConnector",
    "SyslogSourceTask",
]
