"""The HTTP client shared by source and sink: connections, credentials, retries, TLS."""
