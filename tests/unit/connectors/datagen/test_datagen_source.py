"""The datagen source as the runtime drives it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connect.config import InvalidConfigError
from connect.data import Schema, SourceBatch, SourceRecord
from connect.errors import ConfigError, ConnectError
from connect.testing import run_source
from connectors.datagen import DatagenConfig, DatagenConnector, DatagenTask, DatagenTaskConfig
from connectors.datagen.source import Pace

Context = Callable[..., Any]
PROPS = {"kafka.topic": "rows", "quickstart": "pageviews", "max.interval": "0", "random.seed": "7"}


def task_of(context: Any, **props: str) -> DatagenTask:
    given = PROPS | {key.replace("_", "."): value for key, value in props.items()}
    task = DatagenTask(DatagenTaskConfig.parse({key: value for key, value in given.items() if value}), context)
    task.start()
    return task


def read(task: DatagenTask, count: int) -> list[SourceRecord]:
    records: list[SourceRecord] = []
    while len(records) < count:
        batch = task.poll()
        assert batch is not None
        records += batch
    return records[:count]


def content(record: SourceRecord) -> tuple[Any, Any, Any]:
    return record.key, record.value, record.source_offset["current.iteration"]


def test_the_same_seed_gives_the_same_records(source_context: Context) -> None:
    one, other = (read(task_of(source_context()), 5000) for _ in range(2))
    assert list(map(content, one)) == list(map(content, other))
    third = read(task_of(source_context(), random_seed="8"), 5000)
    assert list(map(content, one)) != list(map(content, third))


def test_tasks_make_records_of_their_own(source_context: Context) -> None:
    first, second = (read(task_of(source_context(), task_id=task, quickstart="users"), 100) for task in "01")
    assert [record.value for record in first] != [record.value for record in second]
    assert second[0].source_partition == {"task.id": 1}


@pytest.mark.parametrize("place", [0, 1, 2047, 2048, 2049, 4999])
def test_a_task_goes_on_where_its_offset_says(source_context: Context, place: int) -> None:
    records = read(task_of(source_context()), 6000)
    context = source_context()
    context.commit(records[place].source_partition, records[place].source_offset)
    after = read(task_of(context), 6000 - place - 1)
    assert list(map(content, after)) == list(map(content, records[place + 1 :]))
    assert after[0].source_offset["task.generation"] == 1


def test_a_seed_that_was_chosen_is_kept_with_the_offsets(source_context: Context) -> None:
    context = source_context()
    task = task_of(context, random_seed="")
    records = read(task, 300)
    context.commit(records[99].source_partition, records[99].source_offset)
    again = read(task_of(context, random_seed=""), 200)
    assert list(map(content, again)) == list(map(content, records[100:300]))
    other = read(task_of(source_context(), random_seed=""), 300)
    assert list(map(content, other)) != list(map(content, records))


def test_a_task_goes_on_from_the_offset_of_java(source_context: Context) -> None:
    context = source_context()
    context.commit({"task.id": 0}, {"task.generation": 2, "current.iteration": 40, "random.seed": -5})
    (record,) = read(task_of(context, random_seed=""), 1)
    assert record.value["viewtime"] == 1 + 40 * 10
    assert dict(record.source_offset) == {"task.generation": 3, "current.iteration": 41, "random.seed": -5}


def test_a_record_is_as_java_makes_it(source_context: Context) -> None:
    first, second = read(task_of(source_context(), task_id="3"), 2)
    assert first.topic == "rows"
    assert first.key == first.value["viewtime"] == 1
    assert first.key_schema is Schema.int64()
    headers = [(header.key, header.value, header.schema) for header in second.headers]
    assert headers == [
        ("task.generation", 0, Schema.int64()),
        ("task.id", 3, Schema.int64()),
        ("current.iteration", 1, Schema.int64()),
    ]
    assert dict(second.source_offset) == {"task.generation": 0, "current.iteration": 2, "random.seed": 7}


def test_without_a_key_field_the_key_is_null(source_context: Context) -> None:
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
    (record,) = read(task_of(source_context(), quickstart="", schema_string=text), 1)
    assert (record.key, record.key_schema) == (None, Schema.string(optional=True))
    (keyed,) = read(task_of(source_context(), quickstart="", schema_string=text, schema_keyfield="a"), 1)
    assert keyed.key == keyed.value["a"]


def test_headers_may_be_left_out(source_context: Context) -> None:
    (record,) = read(task_of(source_context(), record_headers="false"), 1)
    assert len(record.headers) == 0


def test_after_its_iterations_a_task_is_drained_and_does_not_fail(source_context: Context) -> None:
    context = source_context()
    task = task_of(context, iterations="3000")
    assert task.remaining() == task.total() == {"records": 3000}
    assert not task.drained()
    records = read(task, 3000)
    assert task.poll() is None
    assert task.drained()
    assert task.remaining() == {"records": 0}
    context.commit(records[-1].source_partition, records[-1].source_offset)
    assert task_of(context, iterations="3000").poll() is None


def test_each_task_has_its_iterations() -> None:
    records = run_source(DatagenConnector, PROPS | {"iterations": "10"}, max_tasks=3)
    assert len(records) == 30


def test_a_batch_is_given_by_column(source_context: Context) -> None:
    batch = task_of(source_context()).poll()
    assert isinstance(batch, SourceBatch)
    assert len(batch) == 2048
    table = batch.value.to_arrow()
    assert table.to_pylist() == [record.value for record in batch]


def test_records_are_spaced_by_half_the_longest_interval() -> None:
    pace = Pace(10, now=0.0)
    made = sum(pace.due(tick / 100, 10_000) for tick in range(2001))
    assert made in range(3600, 4400)


def test_what_was_missed_in_a_pause_is_not_caught_up_with() -> None:
    pace = Pace(10, now=0.0)
    assert pace.due(3600.0, 10_000) < 400


def test_no_more_records_come_than_are_asked_for() -> None:
    pace = Pace(10, now=0.0)
    assert pace.due(0.9, 3) == 3
    assert Pace(0, now=0.0).due(0.0, 5) == 5


def test_a_paced_task_waits(source_context: Context) -> None:
    context = source_context()
    task = task_of(context, max_interval="3600000")
    assert task.poll() is None
    assert 0 < context.waits[0] <= 1


# -- configurations ------------------------------------------------------------------------------------------------


def errors(**props: str) -> dict[str, str]:
    given = {"kafka.topic": "rows", **{key.replace("_", "."): value for key, value in props.items()}}
    return {value.name: " ".join(value.errors) for value in DatagenConfig.validate(given) if value.errors}


def test_exactly_one_schema_is_wanted() -> None:
    for props in ({}, {"quickstart": "users", "schema_string": "{}"}, {"quickstart": "users", "schema_filename": "/x"}):
        found = errors(**props)
        assert found.keys() == {"schema.string", "schema.filename", "quickstart"}
        assert "Set exactly one of" in found["quickstart"]


def test_names_of_quickstarts_may_be_written_as_people_do() -> None:
    assert errors(quickstart="Stock_Trades") == {}
    assert errors(quickstart="STOCK_TRADES") == {}
    assert "must be one of" in errors(quickstart="stocks")["quickstart"]


def test_a_schema_and_its_key_are_checked_before_anything_runs() -> None:
    assert "No records can be made" in errors(schema_string="{}")["schema.string"]
    found = errors(quickstart="users", schema_keyfield="name")
    assert "it has registertime, userid" in found["schema.keyfield"]


def test_a_schema_is_read_from_a_file(source_context: Context, tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}))
    (record,) = read(task_of(source_context(), quickstart="", schema_filename=str(file)), 1)
    assert record.value.keys() == {"a"}


@pytest.mark.parametrize(
    "secret",
    [
        "password=hunter2",
        '{"password": "hunter2"}',
        '{"type": "hunter2"}',
        '{"type": "record", "name": "r", "fields": [{"name": "hunter2", "type": "null"}]}',
        '"hunter2"',
        '{"type": "record", "name": "hunter2", "fields": []}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": '
        '{"type": "int", "arg.properties": {"options": ["hunter2"]}}}]}',
    ],
)
def test_an_error_never_shows_what_is_in_a_file(source_context: Context, tmp_path: Path, secret: str) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(secret)
    with pytest.raises(ConnectError) as refused:
        task_of(source_context(), quickstart="", schema_filename=str(file))
    shown: BaseException | None = refused.value
    while shown is not None:
        assert "hunter2" not in str(shown)
        shown = shown.__cause__
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("name", ["/dev/zero", "/nowhere/x.avsc", "."])
def test_a_file_that_is_none_is_refused(source_context: Context, name: str) -> None:
    with pytest.raises(ConnectError, match="is not an existing file"):
        task_of(source_context(), quickstart="", schema_filename=name)


def test_a_large_file_is_not_read_whole(source_context: Context, tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(ConnectError, match="is not a usable Avro schema"):
        task_of(source_context(), quickstart="", schema_filename=str(file))


def test_a_key_that_the_file_does_not_have_is_refused(source_context: Context, tmp_path: Path) -> None:
    file = tmp_path / "s.avsc"
    file.write_text(json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}))
    with pytest.raises(ConnectError, match=r"Correct schema\.keyfield"):
        task_of(source_context(), quickstart="", schema_filename=str(file), schema_keyfield="b")


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"task.id": 0}, {"current.iteration": -1}),
        ({"task.id": 0}, {"current.iteration": "1"}),
        ({"task.id": 0}, {}),
        ({"task": 0}, {"current.iteration": 1}),
    ],
)
def test_offsets_that_mean_nothing_are_refused(partition: dict[str, Any], offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError):
        DatagenConnector.alter_offsets(DatagenConfig.parse(PROPS), {json.dumps(partition): offset})


def test_the_topic_is_required() -> None:
    with pytest.raises((ConfigError, InvalidConfigError), match=r"kafka\.topic"):
        DatagenConfig.parse({"quickstart": "users"})
