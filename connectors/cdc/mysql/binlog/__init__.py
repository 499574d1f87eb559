"""The binary log of MySQL and MariaDB: its packets, events and rows."""
