"""What ``spark.read.format("sluice")`` reads, without a Spark: the data source in one process."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

import pyspark_sluice
from connect.data import SourceRecord
from connect.errors import ConfigError, ConnectError, DataError, PluginError, RetriableError
from connectors.spark import register
from connectors.spark.datasource.source import SluiceDataSource
from connectors.spark.datasource.source_tasks import polled_to_the_end

PLUGINS = Path(__file__).parents[4] / "contract" / "plugins"


def source(options: Mapping[str, str]) -> SluiceDataSource:
    """A data source with options as Spark hands them over: their names in lower case."""
    return SluiceDataSource({name.lower(): value for name, value in options.items()})


def read(options: Mapping[str, str], schema: StructType | None = None) -> list[dict[str, Any]]:
    """The rows, read as Spark reads them: everything goes through pickle on its way to another process."""
    made = source(options)
    if schema is None:
        schema = made.schema()
    reader = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(made)).reader(schema)))
    pieces = pickle.loads(pickle.dumps(reader.partitions()))
    batches = [batch for piece in pieces for batch in reader.read(piece)]
    assert all(batch.schema.names == schema.fieldNames() for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def directory(folder: Path) -> dict[str, str]:
    return {
        "connector.class": "DirectorySource",
        "path": str(folder),
        "topic": "rows",
        "tasks.max": "1",
        "settle.ms": "0",
        "scan.interval.ms": "1",
    }


def lines(folder: Path, name: str, *rows: object) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def shop(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            """
            CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(10,2), at TIMESTAMP);
            CREATE TABLE visits (id INTEGER PRIMARY KEY, page TEXT);
            INSERT INTO orders VALUES (1, 9.25, '2026-01-02 03:04:05.678'), (2, NULL, NULL);
            INSERT INTO visits VALUES (7, '/');
            """
        )
    return {
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{file}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "",
    }


class TestRows:
    """Values become columns."""

    def test_of_a_folder(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1, "tags": ["x"], "at": {"lat": 1.5}}, {"id": 2, "tags": [], "at": None})
        assert source(directory).schema().simpleString() == "struct<id:bigint,tags:array<string>,at:struct<lat:double>>"
        assert read(directory) == [
            {"id": 1, "tags": ["x"], "at": {"lat": 1.5}},
            {"id": 2, "tags": [], "at": None},
        ]

    def test_of_a_table_with_exact_numbers_and_times(self, tmp_path: Path) -> None:
        options = {**shop(tmp_path / "shop.db"), "table.whitelist": "orders"}
        assert source(options).schema()["price"].dataType == DecimalType(10, 2)
        moment = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, dt.UTC)
        assert read(options) == [
            {"id": 1, "price": Decimal("9.25"), "at": moment},
            {"id": 2, "price": None, "at": None},
        ]

    def test_of_values_that_are_no_structs(self, tmp_path: Path) -> None:
        file = tmp_path / "lines.txt"
        file.write_text("one\ntwo\n", encoding="utf-8")
        options = {"connector.class": "FileStreamSource", "file": str(file), "topic": "lines"}
        assert read(options) == [{"value": "one"}, {"value": "two"}]

    def test_with_keys_headers_and_where_they_come_from(self) -> None:
        options = {
            "connector.class": "Datagen",
            "kafka.topic": "people",
            "quickstart": "users",
            "iterations": "1",
            "random.seed": "1",
            "max.interval": "0",
            "key.column": "name",
            "headers.column": "headers",
            "metadata.column": "from",
            "transforms": "Tag",
            "transforms.Tag.type": "InsertHeader",
            "transforms.Tag.header": "team",
            "transforms.Tag.value.literal": "blue",
        }
        (row,) = read(options)
        assert row["name"] == row["userid"]
        assert row["headers"][-1:] == [{"key": "team", "value": "blue"}]
        assert row["from"]["topic"] == "people"
        assert json.loads(row["from"]["source_partition"]) == {"task.id": 0}

    def test_are_transformed_though_spark_keeps_no_case(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1}, {"id": 2})
        transforms = {
            "transforms": "AddOrigin",
            "transforms.AddOrigin.type": "InsertField$Value",
            "transforms.AddOrigin.static.field": "Origin",
            "transforms.AddOrigin.static.value": "Here",
        }
        assert read(directory | transforms) == [{"id": 1, "Origin": "Here"}, {"id": 2, "Origin": "Here"}]

    def test_of_many_polls_come_in_few_batches(self) -> None:
        options = {"connector.class": "Datagen", "kafka.topic": "t", "quickstart": "users", "iterations": "3000"}
        made = source({**options, "max.interval": "0"})
        reader = made.reader(made.schema())
        (piece,) = reader.partitions()
        assert [batch.num_rows for batch in reader.read(piece)] == [3000]  # type: ignore[union-attr]

    def test_are_none_where_there_is_no_piece(self, folder: Path, directory: dict[str, str]) -> None:
        assert read(directory, StructType([StructField("id", LongType())])) == []
        reader = source(directory).reader(StructType([StructField("id", LongType())]))
        assert list(reader.read(None)) == []  # type: ignore[arg-type]


class TestColumns:
    """Columns are those of the first records, or the user's."""

    WANTED = StructType([StructField("id", LongType()), StructField("name", StringType())])

    def test_a_later_record_that_does_not_fit_is_named(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1}, {"id": 2})
        lines(folder, "b.jsonl", {"id": "three"})
        with pytest.raises(ConnectError) as caught:
            read(directory)
        assert '"id"' in str(caught.value)
        assert "b.jsonl" in str(caught.value)
        assert "source partition" in str(caught.value)

    def test_and_left_out_if_that_is_tolerated(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1}, {"id": 2})
        lines(folder, "b.jsonl", {"id": "three"}, {"id": 4}, {"id": 5, "more": True})
        assert read({**directory, "errors.tolerance": "all"}) == [{"id": 1}, {"id": 2}, {"id": 4}]

    def test_the_user_may_choose_them(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1, "more": {"x": 1}}, {"id": 2, "name": "two"})
        assert read(directory, self.WANTED) == [{"id": 1, "name": None}, {"id": 2, "name": "two"}]

    def test_but_no_value_is_changed_for_it(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1.5, "name": "x"})
        with pytest.raises(ConnectError, match=r'"id".*\.schema\(\.\.\.\)'):
            read(directory, self.WANTED)

    def test_no_records_show_none(self, folder: Path, directory: dict[str, str]) -> None:
        with pytest.raises(ConnectError, match=r"no records now .* \.schema\(\.\.\.\)"):
            source(directory).schema()

    def test_a_column_beside_must_have_a_free_name(self, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1})
        with pytest.raises(ConfigError, match=r"metadata\.column.*a name of its own"):
            source({**directory, "key.column": "k", "metadata.column": "k"}).schema()


class TestConfiguration:
    """Options are checked as over REST."""

    def test_everything_wrong_is_told_at_once(self) -> None:
        options = {"connector.class": "Datagen", "quickstart": "userz", "transforms": "T", "transforms.T.type": "Nope"}
        with pytest.raises(ConfigError) as caught:
            source(options).schema()
        assert "kafka.topic" in str(caught.value)
        assert "userz" in str(caught.value)
        assert "transforms.T.type" in str(caught.value)

    def test_an_unknown_connector_is_told_with_those_there_are(self) -> None:
        with pytest.raises(PluginError, match=r"Nobody.*JdbcSourceConnector"):
            source({"connector.class": "Nobody"}).schema()

    def test_a_sink_is_not_read(self) -> None:
        with pytest.raises(ConfigError, match=r"It is a sink.*df\.write"):
            source({"connector.class": "FileStreamSink", "topics": "t"}).schema()

    def test_there_are_no_dead_letters_without_kafka(self, directory: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match=r"errors\.deadletterqueue\.topic\.name needs Kafka"):
            source({**directory, "errors.deadletterqueue.topic.name": "dlq"}).schema()

    def test_aliases_differ_in_more_than_case(self, directory: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match="differ only in case"):
            source({**directory, "transforms": "A,a"}).schema()

    def test_plugins_of_others_are_found_by_plugin_path(self) -> None:
        options = {"connector.class": "Counter", "plugin.path": str(PLUGINS), "topic": "n", "seconds": "0"}
        assert source(options).schema().simpleString() == "struct<value:bigint>"

    def test_the_work_is_divided_as_tasks_max_says(self, tmp_path: Path) -> None:
        options = {**shop(tmp_path / "shop.db"), "tasks.max": "2"}
        schema = StructType([StructField("id", LongType())])
        assert len(source(options).reader(schema).partitions()) == 2
        assert sorted(row["id"] for row in read(options, schema)) == [1, 2, 7]


class TestSecrets:
    """Secrets are looked up where they are needed, and shown nowhere."""

    @pytest.fixture
    def options(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        monkeypatch.setenv("SHOP_FILE", str(tmp_path / "hidden.db"))
        options = shop(tmp_path / "hidden.db")
        return options | {"connection.url": "jdbc:sqlite:${env:SHOP_FILE}", "table.whitelist": "visits"}

    def test_references_are_replaced_where_the_reading_is(self, options: dict[str, str]) -> None:
        assert read(options) == [{"id": 7, "page": "/"}]
        reader = source(options).reader(StructType([StructField("id", LongType())]))
        (piece,) = reader.partitions()
        assert b"hidden.db" not in pickle.dumps((reader, piece))
        assert "url" not in repr(piece)

    def test_what_a_reference_stands_for_is_in_no_error(self, options: dict[str, str]) -> None:
        with pytest.raises(ConnectError) as caught:
            read({**options, "connection.url": "jdbc:nonsense:${env:SHOP_FILE}"})
        assert "hidden.db" not in str(caught.value)

    def test_a_file_holds_some(self, tmp_path: Path, folder: Path, directory: dict[str, str]) -> None:
        lines(folder, "a.jsonl", {"id": 1})
        (tmp_path / "secrets.properties").write_text(f"folder={folder}\n", encoding="utf-8")
        assert read({**directory, "path": f"${{file:{tmp_path / 'secrets.properties'}:folder}}"}) == [{"id": 1}]

    def test_providers_of_others_are_made_as_the_options_say(
        self, folder: Path, directory: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines(folder, "a.jsonl", {"id": 1})
        monkeypatch.setenv("IN_FOLDER", str(folder))
        options = {
            **directory,
            "path": "${Mine:IN_FOLDER}",
            "config.providers": "Mine",
            "config.providers.Mine.class": "EnvVarConfigProvider",
            "config.providers.Mine.param.allowlist.pattern": "IN_.*",
        }
        assert read(options) == [{"id": 1}]
        with pytest.raises(ConfigError, match=r"config\.providers\.Mine\.class"):
            read({name: value for name, value in options.items() if not name.endswith(".class")} | directory)


class _Clock:
    """A clock that a wait moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return True


class _Task:
    """A task that gives what its script says, and then nothing."""

    def __init__(self, *script: object) -> None:
        self.context = _Clock()
        self._script = iter(script)

    def poll(self) -> Iterator[SourceRecord] | None:
        step = next(self._script, None)
        if isinstance(step, Exception):
            raise step
        return iter([SourceRecord("t", step)]) if step is not None else None

    def drained(self) -> bool:
        return self.context.now > 100


class TestTheEnd:
    """A read ends when its source says so."""

    def polled(self, task: Any) -> list[Any]:
        return [value for batch in polled_to_the_end(task, clock=task.context) for value in batch.value]

    def test_a_source_that_says_so_is_waited_for(self) -> None:
        assert self.polled(_Task("a", None, "b")) == ["a", "b"]

    def test_a_source_that_fails_for_a_while_is_polled_again(self) -> None:
        assert self.polled(_Task("a", RetriableError("busy", 5.0), "b")) == ["a", "b"]

    def test_one_that_keeps_failing_ends_the_read(self) -> None:
        with pytest.raises(RetriableError, match="busy"):
            self.polled(_Task(*[RetriableError("busy", 7.0)] * 20))

    def test_one_that_never_says_so_is_given_up_after_a_while(self) -> None:
        options = {"connector.class": "Counter", "plugin.path": str(PLUGINS), "topic": "n", "seconds": "0"}
        source(options).schema()
        from counter import CounterTask  # noqa: PLC0415 - it is on the path now

        class Silent(CounterTask):
            def __init__(self) -> None:
                self.context = _Clock()  # type: ignore[assignment]

            def poll(self) -> list[SourceRecord]:
                return []

        with pytest.raises(ConnectError, match=r"nothing for 60 seconds.*readStream.*limit.*drained"):
            self.polled(Silent())


def test_a_mistake_in_a_record_keeps_its_class(folder: Path, directory: dict[str, str]) -> None:
    """An error without a secret passes as it is."""
    lines(folder, "a.jsonl", {"id": 1})
    with pytest.raises(ConnectError) as caught:
        read(directory, StructType([StructField("id", StringType())]))
    assert isinstance(caught.value.__cause__, DataError)


def test_a_session_may_be_told_of_it_where_it_does_not_find_it() -> None:
    known: list[Any] = []
    session = SimpleNamespace(dataSource=SimpleNamespace(register=known.append))
    register(session)  # type: ignore[arg-type]
    assert known == [pyspark_sluice.DefaultSource]
    assert known[0].name() == "sluice"
