"""The database servers of the tests."""

from __future__ import annotations

import sqlalchemy

from equipment.servers.lease import Database


def test_a_database_takes_rows_over_its_url(database: Database) -> None:
    engine = sqlalchemy.create_engine(database.sqlalchemy_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE words (word VARCHAR(20))"))
        connection.execute(sqlalchemy.text("INSERT INTO words VALUES ('grüß')"))
    engine.dispose()
    assert database.rows("SELECT word FROM words") == [("grüß",)]
