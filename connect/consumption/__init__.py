"""Consuming from Kafka: the client's messages as columns, and ranges of offsets that come to an end.

The worker's loops and the executors of Spark read with the same code.
"""
