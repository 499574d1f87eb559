"""TLS as Java's ``ssl.*`` settings say it: key stores and trust stores read, and given to Python's ``ssl``."""
