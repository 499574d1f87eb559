"""SQL databases: their URLs, hosts, connections, dialects and writers."""
