"""Sinks that write documents to Elasticsearch and OpenSearch, and the source that reads them."""

from connectors.elasticsearch.sink import (
    ElasticsearchSinkConnector,
    ElasticsearchSinkTask,
    OpenSearchSinkConnector,
    OpenSearchSinkTask,
)
from connectors.elasticsearch.source import ElasticsearchSourceConnector, ElasticsearchSourceTask

__all__ = [
    "ElasticsearchSinkConnector",
    "ElasticsearchSinkTask",
    "ElasticsearchSourceConnector",
    "ElasticsearchSourceTask",
    "OpenSearchSinkConnector",
    "OpenSearchSinkTask",
]
