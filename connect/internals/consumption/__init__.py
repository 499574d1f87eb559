"""Consumption from Kafka: the client's messages as columns, and bounded ranges of offsets.

The worker's loops and Spark's executors read with the same code.
"""
