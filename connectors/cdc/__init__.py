"""Change data capture: the changes of databases as records, as Debezium sends them."""
