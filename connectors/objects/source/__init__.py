"""Sources that read objects of S3, Google Cloud Storage and Azure: what a storage sink wrote, or any."""

from connectors.objects.source.source import AzureBlobSourceConnector, GcsSourceConnector, S3SourceConnector

__all__ = ["AzureBlobSourceConnector", "GcsSourceConnector", "S3SourceConnector"]
