"""Syslog: sources for UDP, TCP, TLS and RELP, and a sink for TCP and TLS."""

from connectors.syslog.sink import SyslogSinkConnector, SyslogSinkTask
from connectors.syslog.sink_config import SyslogSinkConfig
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
    "SyslogSinkConfig",
    "SyslogSinkConnector",
    "SyslogSinkTask",
    "SyslogSourceConfig",
    "SyslogSourceConnector",
    "SyslogSourceTask",
]
