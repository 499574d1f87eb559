"""Writers: how rows are written to each kind of database."""

from connectors.jdbc.sink.writers.registry import writer_class, writer_of
from connectors.jdbc.sink.writers.writer import Target, Writer

__all__ = ["Target", "Writer", "writer_class", "writer_of"]
