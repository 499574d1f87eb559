"""The sink for MongoDB."""
