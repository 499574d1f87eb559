"""Kafka clients configured with Java's settings, for the worker and for connectors that talk to Kafka themselves."""
