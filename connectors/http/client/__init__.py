"""The HTTP client that source and sink share: connections, credentials, retries, TLS."""
