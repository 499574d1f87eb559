"""TLS from Java's ``ssl.*`` settings: key stores and trust stores are loaded into Python's ``ssl``."""
