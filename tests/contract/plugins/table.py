"""A sink in twenty lines: it writes each record to a table of SQLite exactly once, even after a kill."""

import sqlite3

from connect.config import HIGH, Config, option
from connect.data import SinkBatch
from connect.errors import RetriableError
from connect.sink import SinkConnector, SinkTask

CREATE = "CREATE TABLE IF NOT EXISTS records (topic, part, pos, value, PRIMARY KEY (topic, part, pos))"
INSERT = "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)"


class TableConfig(Config):
    """Where to write."""

    database: str = option(importance=HIGH, doc="File of the SQLite database; made if it does not exist.")


class TableTask(SinkTask[TableConfig]):
    """Inserts records, and skips those that the table has already."""

    def start(self) -> None:
        self.database = sqlite3.connect(self.config.database, timeout=0.1)
        self.database.execute(CREATE)

    def put(self, records: SinkBatch) -> None:
        rows = [(*record.origin, record.original_offset, record.value) for record in records]
        try:
            with self.database:
                self.database.executemany(INSERT, rows)
        except sqlite3.OperationalError as error:
            raise RetriableError(f"The database cannot be written now: {error}", retry_after=1) from error

    def stop(self) -> None:
        self.database.close()


class TableConnector(SinkConnector[TableConfig]):
    """Writes to the table records of a SQLite database."""

    task_class = TableTask
