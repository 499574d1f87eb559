"""The data plane: converters, transformations and error handling between a connector and the bytes on a topic.

The worker's loops and Spark's executors run the same chain, so a configuration means the same in both. Batches are
processed by column. If that fails for any reason, the batch is processed again record by record, and only there are
errors retried, reported and tolerated.
"""
