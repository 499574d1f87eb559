"""Formats of files that contain their own schema: Avro, Parquet, ORC.

They know nothing of folders and offsets: a :class:`~connect.kits.files.readers.formats.table.Table` counts rows.
"""
