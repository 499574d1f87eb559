"""MongoDB: clients, the kinds of their errors, documents as JSON, and reading ahead of change streams."""
