"""The contract of the targets of a Spark sink (files, Delta, Iceberg), as tests that every kind of target has to pass.

A target is what readers see of a topic: whatever its format, it grows with what is loaded, keeps the offsets with the
rows, has one driver, and holds every record that is not a dead letter.
"""

from __future__ import annotations

import base64
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import pytest

from connect.bulk import Progress, TablePreview
from connect.errors import ConnectError, DataError
from connectors.spark.sink import SparkSinkTask
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.sink.target import FencedError
from equipment.brokers.dead_letters import dead_letters
from equipment.brokers.filled_topic import FilledTopic
from equipment.proofs import thorough_rows
from equipment.workers.bulk_context import BulkContext
from equipment.workers.small_spark import SMALL_SPARK

__all__ = ["JSON", "UPSERT", "LoadedTable", "TargetContract", "UpsertContract", "progress_of"]

JSON: Final = {"value.converter": "converters.json.JsonConverter", "value.converter.schemas.enable": "false"}
"""Records without schemas."""
UPSERT: Final = {
    **JSON,
    "key.converter": "converters.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "write.mode": "upsert",
}
"""Changes to the rows of keys."""
FOLLOWING: Final = {
    **UPSERT,
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "upsert.envelope": "debezium",
}
"""Debezium's changes, with their schemas."""


class LoadedTable(ABC):
    """A topic of two partitions, a store, and tasks that load the one into a table in the other."""

    connector: ClassVar[str] = "sink"
    topic_id: ClassVar[str | None] = None
    own_props: ClassVar[Mapping[str, str]] = {}
    """What the format, and a small session for it, need."""

    def __init__(self, bootstrap: str, topic: str, store: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.store = store
        self.records = FilledTopic(bootstrap, topic, self.topic_id)

    def other(self, name: str) -> Self:
        """Another topic, for a table in the same store."""
        return type(self)(self.bootstrap, f"{self.topic}-{name}", self.store)

    def props(self, props: Mapping[str, str]) -> dict[str, str]:
        """A configuration."""
        return {
            "name": self.connector,
            "topics": self.topic,
            "store.url": str(self.store),
            "key.converter": "converters.byte_array.ByteArrayConverter",
            "header.converter": "converters.simple_header.SimpleHeaderConverter",
            **SMALL_SPARK,
            **self.own_props,
            **props,
        }

    def task(self, props: Mapping[str, str] = JSON) -> SparkSinkTask:
        """A task that has started, on the session that the tests of a file share."""
        task = self._new_task(props)
        task.start()
        return task

    def previewed(self, props: Mapping[str, str] = JSON) -> list[TablePreview]:
        """What another driver, which is not started, would write of all that was produced."""
        return list(self._new_task(props).preview(self.records.ranges(), 10))

    def _new_task(self, props: Mapping[str, str]) -> SparkSinkTask:
        whole = self.props(props)
        return SparkSinkTask(SparkSinkConfig.parse(whole), BulkContext(self.connector, self.bootstrap, whole))

    def queue(self) -> dict[str, str]:
        """The properties of a task that sends bad records to a queue of its own."""
        return {**JSON, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": f"{self.topic}-dlq"}

    def divided_by(self, field: str) -> dict[str, str]:
        """The properties of a table that is divided by a field."""
        return {"partitioner.class": "FieldPartitioner", "partition.field.name": field}

    @property
    def place(self) -> str:
        """Where previews say that the table is."""
        return f"file:{self.path()}"

    def path(self, table: str | None = None) -> Path:
        """The folder of a table, which is that of the topic unless another is named."""
        return self.store / "topics" / (table or self.topic)

    @abstractmethod
    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows that a reader other than Spark sees, in the order of their ids."""

    @abstractmethod
    def files(self) -> list[str]:
        """The files that such a reader reads; none without a table."""

    def values(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows without the columns in which they have no value."""
        return [
            {name: value for name, value in row.items() if value is not None}
            for row in sorted(self.rows(table), key=lambda row: row["id"])
        ]


def progress_of(task: SparkSinkTask) -> Progress:
    """What a task has reported of its load."""
    assert isinstance(task.context, BulkContext)
    return task.context.last_progress


class TargetContract:
    """Subclasses define the fixture ``target``: a :class:`LoadedTable` of a new topic and an empty store."""

    def test_a_table_grows_and_another_driver_goes_on_with_it(self, target: LoadedTable) -> None:
        first = [{"id": n, "origin": "EWR", "delay": n / 2, "tags": ["a"], "at": {"gate": "B1"}} for n in range(20)]
        target.records.produce(first)
        task = target.task()
        target.records.drain(task)
        assert target.values() == first
        reported = progress_of(task)
        assert (reported.rows, reported.files) == (20, len(target.files()))

        second = [{"id": n, "gate": {"name": "B1", "floor": 2}, "tags": []} for n in range(20, 40)]
        target.records.produce([{**row, "none": None, "empty": []} for row in second])
        target.records.drain(task)
        assert target.values() == [*first, *second]

        again = target.task()
        assert again.committed() == dict(target.records.ends)
        target.records.produce([{"id": 40}])
        target.records.drain(again)
        assert target.values() == [*first, *second, {"id": 40}]

    def test_what_the_first_records_of_a_large_load_do_not_show_is_found(self, target: LoadedTable) -> None:
        records: list[dict[str, Any]] = [{"id": n, "delay": n} for n in range(20_000)]
        records[-1] = {"id": 19_999, "delay": 0.5, "gate": "B1"}
        target.records.produce(records)
        target.records.drain(target.task())
        assert target.values() == [{**record, "delay": float(record["delay"])} for record in records]

    def test_a_preview_shows_the_columns_that_the_table_would_get_and_fences_nobody(self, target: LoadedTable) -> None:
        target.records.produce([{"id": 0, "origin": "EWR"}, {"id": 1, "origin": "JFK"}])
        task = target.task()
        target.records.drain(task)
        before = target.files()
        target.records.produce([{"id": 2, "gate": "B1"}])
        (table,) = target.previewed()
        assert (table.table, table.place) == (target.topic, target.place)
        assert table.schema.field_names == ("id", "origin", "gate")
        assert table.rows == [{"id": 2, "origin": None, "gate": "B1"}]
        assert target.files() == before
        target.records.drain(task)
        assert [row["id"] for row in target.values()] == [0, 1, 2]

    def test_topics_are_loaded_at_once_into_tables_of_their_own(self, target: LoadedTable) -> None:
        targets = [target, target.other("b")]
        task = target.task({**JSON, "topics": ",".join(each.topic for each in targets)})
        for start in (0, 10):
            for number, each in enumerate(targets):
                each.records.produce(
                    [{"id": n, "number": number, **({"gate": n} if start else {})} for n in range(start, start + 10)]
                )
            task.load([item for each in targets for item in each.records.ranges(task.committed())])
        assert task.committed() == {tp: end for each in targets for tp, end in each.records.ends.items()}
        for number, each in enumerate(targets):
            expected = [{"id": n, "number": number, **({"gate": n} if n > 9 else {})} for n in range(20)]
            assert each.values() == expected
            each.records.produce([{"id": 20}] if number else [b"{"])
        with pytest.raises(DataError, match=f"Bad record in topic {target.topic}, partition 0, offset 10"):
            task.load([item for each in targets for item in each.records.ranges(task.committed())])
        assert len(target.values()) == 20

    def test_of_two_drivers_the_later_one_has_the_table(self, target: LoadedTable) -> None:
        target.records.produce([{"id": 0}])
        first = target.task()
        target.records.drain(first)
        second = target.task()
        target.records.produce([{"id": 1}, {"id": 2}])
        # The first one is alive and knows of nothing: it writes its files, and finds its table taken.
        with pytest.raises(FencedError, match="has taken over"):
            first.load(target.records.ranges(first.committed()))
        assert [row["id"] for row in target.values()] == [0]
        target.records.drain(second)
        assert [row["id"] for row in target.values()] == [0, 1, 2]

    def test_a_bad_record_fails_the_load_and_names_itself(self, target: LoadedTable) -> None:
        target.records.produce([{"id": 0}, {"id": 1}, b"{broken", {"id": 3}])
        task = target.task()
        with pytest.raises(DataError, match=rf"topic {target.topic}, partition 0, offset 1: "):
            target.records.drain(task)
        assert target.files() == []
        assert task.committed() == {}

    @pytest.mark.parametrize(
        ("is_divided", "bad"), [(False, b"not json"), (True, {"id": 1}), *thorough_rows((False, None), (False, {}))]
    )
    def test_a_first_load_without_one_usable_record_has_its_dead_letters(
        self, target: LoadedTable, *, is_divided: bool, bad: Any
    ) -> None:
        props = {**JSON, **(target.divided_by("k") if is_divided else {})}
        target.records.produce([bad, bad, bad])
        with pytest.raises(DataError, match=r"Bad record in topic .*, partition 0, offset 0"):
            target.records.drain(target.task(props))
        with pytest.raises(ConnectError, match=r"errors\.tolerance\.limit"):
            target.records.drain(target.task({**props, "errors.tolerance": "all", "errors.tolerance.limit": "2"}))
        task = target.task({**props, **target.queue()})
        target.records.drain(task)
        assert len(dead_letters(target.bootstrap, f"{target.topic}-dlq")) == 3
        target.records.produce([{"id": 2, "k": "a"}])
        target.records.drain(task)
        assert [row["id"] for row in target.values()] == [2]

    def test_the_files_of_loads_are_merged_and_the_offsets_stay(self, target: LoadedTable) -> None:
        for first in range(0, 30, 10):
            target.records.produce([{"id": n} for n in range(first, first + 10)])
            target.records.drain(target.task())
        assert len(target.files()) == 6

        target.records.produce([{"id": n} for n in range(30, 40)])
        target.records.drain(target.task({**JSON, "compact.interval.ms": "1"}))
        assert len(target.files()) < 6
        assert target.values() == [{"id": n} for n in range(40)]
        assert target.task().committed() == dict(target.records.ends)


class UpsertContract:
    """The contract of a target in which changes replace rows. Its fixture is that of :class:`TargetContract`."""

    upsert_props: ClassVar[Mapping[str, str]] = {}
    """What is configured besides."""

    def check(self, target: Any) -> None:
        """Check what else is true of the table in the end."""

    def test_a_table_is_what_a_stream_of_changes_says(self, target: LoadedTable) -> None:
        seed = int(os.environ.get("SLUICE_TEST_SEED", random.randrange(2**32)))
        print(f"SLUICE_TEST_SEED={seed}")
        dice = random.Random(seed)
        props = {**UPSERT, **self.upsert_props, "upsert.envelope": "debezium"}
        model: dict[int, dict[str, Any]] = {}
        task = target.task(props)
        for load in range(4):
            keys, values = changes(dice, model, dice.choice((1, 50, 300)) if load else 40, with_extra=load > 1)
            target.records.produce(values, keys)
            if load == 2:
                task = target.task(props)
            target.records.drain(task)
            assert target.values() == [row for _, row in sorted(model.items())]
        self.check(target)

    def test_a_table_follows_the_columns_of_its_source(self, target: LoadedTable) -> None:
        """As an ``ALTER TABLE`` of the source changes them: wider types, more digits, one more, one less."""
        task = target.task(FOLLOWING)
        before = {"id": "int32", "n": "int16", "f": "float", "price": _decimal(5), "gone": "string", "name": "string"}
        target.records.produce(
            *_enveloped(before, [(n, {"n": n, "f": 0.5, "price": 250, "gone": "x"}) for n in (1, 2, 3)])
        )
        target.records.drain(task)
        after = {"id": "int64", "n": "int64", "f": "double", "price": _decimal(9), "name": "string", "more": "int32"}
        values = {"n": 2**40, "f": 0.1, "price": 1_234_567_89, "more": 7}
        target.records.produce(*_enveloped(after, [(1, values), (4, values), (2, None)]))
        target.records.drain(task)
        new = {"n": 2**40, "f": 0.1, "price": Decimal("1234567.89"), "more": 7}
        old = {"id": 3, "n": 3, "f": 0.5, "price": Decimal("2.50"), "gone": "x"}
        assert target.values() == [{"id": 1, **new}, old, {"id": 4, **new}]
        # A later narrower one fits, and what was left out is back.
        target.records.produce(*_enveloped(before, [(3, {"n": 1, "f": 1.5, "price": 100, "gone": "y"})]))
        target.records.drain(target.task(FOLLOWING))
        assert target.values()[1] == {"id": 3, "n": 1, "f": 1.5, "price": Decimal("1.00"), "gone": "y"}

    def test_rows_are_found_by_one_key_as_long_as_there_is_a_table(self, target: LoadedTable) -> None:
        target.records.produce([{"id": 1, "part": 1}, {"id": 2, "part": 1}], [{"id": 1}, {"id": 2}])
        target.records.drain(target.task(UPSERT))
        target.records.produce([{"id": 1, "part": 2, "more": 1}], [{"id": 1, "part": 2}])
        for _ in range(2):
            task = target.task(UPSERT)
            with pytest.raises(
                DataError, match="the key of the change is id, part, but the rows of the table are found"
            ):
                target.records.drain(task)
        target.records.drain(target.task({**UPSERT, "upsert.keys": "id"}))
        assert target.values() == [{"id": 1, "part": 2, "more": 1}, {"id": 2, "part": 1}]


def _decimal(digits: int) -> dict[str, Any]:
    parameters = {"scale": "2", "connect.decimal.precision": str(digits)}
    return {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": parameters}


def _enveloped(
    columns: Mapping[str, Any], changes: Sequence[tuple[int, Mapping[str, Any] | None]]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The values and keys of changes, with their schemas, of a table with these columns; ``None`` deletes a row."""
    fields = [
        {"field": name, "optional": name != "id", **(kind if isinstance(kind, dict) else {"type": kind})}
        for name, kind in columns.items()
    ]
    row = {"type": "struct", "fields": fields, "optional": True}
    parts = [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}]
    values = []
    keys = []
    for key, change in changes:
        after = None if change is None else {name: change.get(name) for name in columns} | {"id": key}
        if after is not None and isinstance(after["price"], int):
            after["price"] = base64.b64encode(after["price"].to_bytes(8)).decode()
        payload = {"before": None, "after": after, "op": "d" if after is None else "u"}
        values.append({"schema": {"type": "struct", "fields": parts}, "payload": payload})
        keys.append({"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"id": key}})
    return values, keys


def changes(
    dice: random.Random, model: dict[int, dict[str, Any]], count: int, *, with_extra: bool
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The keys and values of random changes, which are made to the model as well."""
    keys: list[Any] = []
    values: list[Any] = []
    for _ in range(count):
        key = dice.randrange(40)
        row = {"id": key, "origin": dice.choice(("EWR", "JFK")), "name": f"n{dice.random()}"}
        row |= {"extra": dice.randrange(9)} if with_extra else {}
        if dice.random() < 0.7:
            values.append({"op": dice.choice("cru"), "before": None, "after": row})
            model[key] = row
        else:
            values.append(dice.choice((None, {"op": "d", "before": {"id": key}, "after": None})))
            model.pop(key, None)
        keys.append({"id": key})
    return keys, values
