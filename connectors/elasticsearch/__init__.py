"""Sinks that write documents to Elasticsearch and OpenSearch."""

from connectors.elasticsearch.sink import (
    ElasticsearchSinkConnector,
    ElasticsearchSinkTask,
    OpenSearchSinkConnector,
    OpenSearchSinkTask,
)

__all__ = ["ElasticsearchSinkConnector", "ElasticsearchSinkTask", "OpenSearchSinkConnector", "OpenSearchSinkTask"]
