"""HTTP: a source for REST APIs and event streams, and a sink that sends a request for each record or batch."""

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
