"""What a validation with ``connect`` finds in the systems of connectors, and that it changes nothing there."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from equipment.fakes.http_api import Answer, Asked, HttpApi, serving_api
from equipment.ports import own_port
from equipment.servers.s3 import S3Server, running_moto
from worker.cli.main import main
from worker.messages import messages
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.link import Line, Link
from worker.security.redaction import Redaction

WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "JsonConverter"}
SECRET = "s3cret-of-the-check"


def checked(**config: str) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Whether the system was asked, and the errors by key."""
    given = {"name": "n", **{key.replace("__", "."): value for key, value in config.items()}}
    ours, theirs = Pipe()
    with ours, theirs:
        inquiry = messages.ValidateConfig(dict(given), WORKER, connect=True)
        report = answer(inquiry, Link(Line(theirs)), Redaction())
    assert isinstance(report, messages.Validated)
    assert SECRET not in str(report.infos)
    values = [shown["value"] for shown in report.infos["configs"]]
    return report.connection, {value["name"]: value["errors"][0] for value in values if value["errors"]}


def test_a_source_of_jdbc_misses_tables_and_columns(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, changed TIMESTAMP)")
    source = {
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{file}",
        "topic.prefix": "shop-",
        "mode": "incrementing",
    }
    assert checked(**source, table__whitelist="orders", incrementing__column__name="id") == ({"checked": True}, {})
    _, errors = checked(**source, table__whitelist="orders,ordres")
    assert list(errors) == ["table.whitelist"]
    assert "would wait for ordres" in errors["table.whitelist"]
    _, errors = checked(**source, table__whitelist="orders", incrementing__column__name="number")
    assert errors == {
        "incrementing.column.name": "Table orders has no column number: correct incrementing.column.name."
    }
    _, errors = checked(**source | {"connection.url": f"jdbc:sqlite:{tmp_path}/none.db"})
    assert "none.db does not exist" in errors["connection.url"]


def test_a_sink_of_jdbc_misses_tables_and_makes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    sink = {"connector.class": "JdbcSink", "connection.url": f"jdbc:sqlite:{file}", "topics": "orders"}
    assert checked(**sink) == ({"checked": True}, {})
    assert not file.exists()
    sqlite3.connect(file).close()
    file.touch()
    assert checked(**sink, auto__create="true") == ({"checked": True}, {})
    _, errors = checked(**sink)
    assert list(errors) == ["table.name.format"]
    assert errors["table.name.format"].startswith("Table orders for the topic orders does not exist")


@pytest.fixture
def api() -> Iterator[HttpApi]:
    with serving_api() as api:
        yield api


def test_http_is_asked_by_head_with_the_credentials(api: HttpApi) -> None:
    def guarded(asked: Asked) -> Answer:
        return Answer(204 if asked.headers.get("authorization") == f"Bearer {SECRET}" else 401)

    api.route("/", guarded)
    sink = {
        "connector.class": "HttpSink",
        "topics": "t",
        "http.url": f"{api.url}/orders/${{key}}",
        "http.authorization.type": "none",
    }
    token = {"http.auth.type": "BEARER", "http.auth.token": SECRET}
    assert checked(**sink, **token) == ({"checked": True}, {})
    assert [(asked.method, asked.path) for asked in api.asked] == [("HEAD", "/orders/")]
    _, errors = checked(**sink, **token | {"http.auth.token": f"{SECRET}-wrong"})
    assert list(errors) == ["http.url"]
    assert "answers with status 401: correct http.auth.type=BEARER" in errors["http.url"]
    _, errors = checked(**sink | {"http.url": f"http://127.0.0.1:{own_port()}/"})
    assert "127.0.0.1" in errors["http.url"]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_moto() as server:
        yield server


@pytest.mark.thorough
def test_a_bucket_that_is_not_there_is_told(s3: S3Server) -> None:
    sink = {"connector.class": "S3Sink", "topics": "t", "format.class": "JsonFormat", "flush.size": "1", **s3.props}
    assert checked(**sink, s3__bucket__name=s3.bucket) == ({"checked": True}, {})
    _, errors = checked(**sink, s3__bucket__name="no-such-bucket")
    assert list(errors) == ["s3.bucket.name"]
    source = {"connector.class": "S3Source", "topic": "t", **s3.props}
    assert checked(**source, s3__bucket__name=s3.bucket) == ({"checked": True}, {})
    _, errors = checked(**source, s3__bucket__name="no-such-bucket")
    assert list(errors) == ["s3.bucket.name"]
    spark = {"connector.class": "SparkSink", "topics": "t", "format.class": "JsonFormat", **s3.props}
    assert checked(**spark, store__url=f"s3://{s3.bucket}/lake") == ({"checked": True}, {})
    _, errors = checked(**spark, store__url="s3://no-such-bucket/lake")
    assert list(errors) == ["store.url"]


def test_a_folder_is_looked_at(tmp_path: Path) -> None:
    sink = {"connector.class": "FolderSink", "topics": "t", "format.class": "JsonFormat", "flush.size": "1"}
    assert checked(**sink, store__url=str(tmp_path / "new")) == ({"checked": True}, {})
    (tmp_path / "file").touch()
    _, errors = checked(**sink, store__url=str(tmp_path / "file" / "below"))
    assert "cannot be created" in errors["store.url"]


@pytest.mark.thorough
def test_both_clusters_of_a_mirror_are_asked() -> None:
    here = f"127.0.0.1:{own_port()}"
    _, errors = checked(
        connector__class="MirrorHeartbeat",
        source__cluster__alias="a",
        target__cluster__alias="b",
        source__cluster__bootstrap__servers=here,
        target__cluster__bootstrap__servers=here,
    )
    assert {key: error.partition(" answers")[0] for key, error in errors.items()} == {
        "source.cluster.bootstrap.servers": f"No broker of {here}",
        "target.cluster.bootstrap.servers": f"No broker of {here}",
    }


def test_what_has_no_check_and_what_is_mistaken_is_not_called_checked(tmp_path: Path) -> None:
    connection, errors = checked(connector__class="FileStreamSource", topic="t", file=str(tmp_path / "f"))
    assert (connection, errors) == ({"checked": False, "reason": "This connector has no check of its system."}, {})
    connection, _ = checked(connector__class="JdbcSource", topic__prefix="t")
    assert connection is not None
    assert connection["checked"] is False


def test_the_command_line_tells_what_the_system_says(tmp_path: Path) -> None:
    file = tmp_path / "orders.json"
    config = {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "t"}
    place = {"connection.url": f"jdbc:sqlite:{tmp_path}/none.db"}
    file.write_text(json.dumps({"name": "orders", "config": config | place}))
    done = CliRunner().invoke(main, ["validate", "--connect", str(file)])
    assert done.exit_code == 1
    assert f"File {tmp_path}/none.db does not exist. Correct connection.url, or create the file." in done.output
    assert done.output.endswith("  Its system was asked\n")
