"""Delivery of records to Kafka, and the source offsets that may be committed as a result.

The worker's loops and Spark's executors send with the same code.
"""
