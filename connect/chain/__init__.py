"""The data plane: what lies between a connector and the bytes on a topic, and what becomes of records that fail there.

The worker's loops and the executors of Spark run the same chain, so that a configuration means the same in both. Whole
batches go through by column. When that fails, for whatever reason, the batch goes through again record by record, and
there, once, retries, reports and tolerance are seen to.
"""
