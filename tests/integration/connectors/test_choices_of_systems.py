"""What real systems tell of the values that a key can name: topics, tables, collections."""

from __future__ import annotations

from multiprocessing.connection import Pipe
from typing import Any

import pytest
from pymongo.database import Database as MongoDatabase

from equipment.brokers.topics import create_topic
from equipment.proofs import thorough
from equipment.servers.lease import Database
from equipment.servers.mongodb import MongoServer, database_name
from worker.messages import messages
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Line, Link
from worker.security.redaction import Redaction

pytestmark = pytest.mark.integration


def found(key: str, config: dict[str, str], bootstrap: str = "unused:1") -> list[str]:
    """What is told while the rest of the configuration is missing."""
    worker = {
        "bootstrap.servers": bootstrap,
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "config.storage.topic": "own-configs",
    }
    ours, theirs = Pipe()
    with ours, theirs:
        report = answer(messages.FindChoices(config, worker, key), Link(Line(theirs)), Redaction())
    assert isinstance(report, messages.ChoicesFound), report
    return report.values


def test_topics_of_sinks_and_mirrors_are_those_of_the_brokers(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    create_topic(bootstrap, "own-configs")
    listed = found("topics", {"connector.class": "FileStreamSink"}, bootstrap)
    assert topic in listed
    assert "own-configs" not in listed
    assert not [name for name in listed if name.startswith("__consumer")]
    mirror = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": bootstrap,
    }
    assert topic in found("topics", mirror)


def test_tables_and_schemas_of_postgresql(postgresql: Database) -> None:
    postgresql.execute(
        "CREATE TABLE orders (id int PRIMARY KEY)", "CREATE SCHEMA more", 'CREATE TABLE more."a$b" (id int)'
    )
    capture = {
        "connector.class": "PostgresConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgresql.port),
        "database.user": postgresql.user,
        "database.password": postgresql.password,
        "database.dbname": postgresql.name,
    }
    assert found("table.include.list", capture) == [r"more.a\$b", "public.orders"]
    assert found("schema.include.list", capture) == ["more", "public"]
    assert found("table.include.list", {**capture, "schema.include.list": "public"}) == ["public.orders"]
    jdbc = {
        "connector.class": "JdbcSource",
        "connection.url": postgresql.jdbc_url,
        "connection.user": postgresql.user,
        "connection.password": postgresql.password,
    }
    names = found("table.whitelist", jdbc)
    assert [name.split(".")[-2:] for name in names] == [["more", "a$b"], ["public", "orders"]]


@pytest.mark.parametrize("product", ["mariadb", *thorough("mysql")])
def test_tables_and_databases_of_mysql(product: str, request: pytest.FixtureRequest) -> None:
    connector = "MariaDbConnector" if product == "mariadb" else "MySqlConnector"
    database: Database = request.getfixturevalue(product)
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    capture = {
        "connector.class": connector,
        "database.hostname": "127.0.0.1",
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
    }
    assert f"{database.name}.orders" in found("table.include.list", capture)
    assert database.name in found("database.include.list", capture)
    only = found("table.include.list", {**capture, "database.include.list": database.name})
    assert only == [f"{database.name}.orders"]


def test_collections_and_databases_of_mongodb(mongodb: MongoServer) -> None:
    name = database_name()
    with mongodb.client() as client:
        own: MongoDatabase[dict[str, Any]] = client[name]
        own["orders"].insert_one({})
        source = {"connector.class": "MongoSource", "connection.uri": mongodb.uri}
        capture = {
            "connector.class": "connectors.cdc.mongodb.MongoDbConnector",
            "mongodb.connection.string": mongodb.uri,
        }
        try:
            assert name in found("database", source)
            assert found("collection", {**source, "database": name}) == ["orders"]
            assert found("collection.include.list", {**capture, "database.include.list": name}) == [f"{name}.orders"]
        finally:
            client.drop_database(name)
