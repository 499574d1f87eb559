"""Snapshots of MySQL and MariaDB: views of one place of the log, the pieces that they are read in, and the records."""
