"""Tables of SQL databases, read and written, with the keys of the JDBC connectors."""
