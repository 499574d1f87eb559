"""HTTP: REST APIs and streams of events as sources, requests for each record or batch as a sink."""

from connectors.http.source import HttpSourceConnector, HttpSourceTask
from connectors.http.source_config import HttpSourceConfig

__all__ = ["HttpSourceConfig", "HttpSourceConnector", "HttpSourceTask"]
