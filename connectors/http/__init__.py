"""HTTP: REST APIs and streams of events as sources, requests for each record or batch as a sink."""

from connectors.http.sink import HttpSinkConnector, HttpSinkTask
from connectors.http.sink_config import HttpSinkConfig
from connectors.http.source import HttpSourceConnector, HttpSourceTask
from connectors.http.source_config import HttpSourceConfig

__all__ = [
    "HttpSinkConfig",
    "HttpSinkConnector",
    "HttpSinkTask",
    "HttpSourceConfig",
    "HttpSourceConnector",
    "HttpSourceTask",
]
