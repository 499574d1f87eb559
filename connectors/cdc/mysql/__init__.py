"""Changes of MySQL and MariaDB, read from their binary logs."""
