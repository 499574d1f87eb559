"""Readers of files: the rows of CSV, TSV, JSON lines, text, Avro, Parquet and ORC files, from any place on."""
