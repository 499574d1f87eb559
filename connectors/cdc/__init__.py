"""Change data capture: the changes of a database, as its log tells them, become records. One folder a database."""
