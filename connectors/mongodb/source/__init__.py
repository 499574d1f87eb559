"""The source for MongoDB."""
