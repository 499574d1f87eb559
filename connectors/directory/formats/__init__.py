"""Formats of files whose rows have a schema in the file itself: Avro, Parquet, ORC.

They know nothing of folders and offsets: a :class:`~connectors.directory.formats.table.Table` counts rows.
"""
