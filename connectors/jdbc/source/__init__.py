"""The JDBC source: which tables and rows to read, and where to continue."""
