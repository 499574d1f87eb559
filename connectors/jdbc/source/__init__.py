"""The JDBC source: which tables, which rows, and where reading continues."""
