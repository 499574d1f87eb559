"""TLS by Java's ``ssl.*`` settings: key stores and trust stores are read and loaded into Python's ``ssl``."""
