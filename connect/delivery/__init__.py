"""The delivery of records to Kafka, and the offsets that it lets be committed.

The worker's loops and the executors of Spark send with the same code.
"""
