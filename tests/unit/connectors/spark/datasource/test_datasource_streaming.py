"""What ``spark.readStream.format("sluice")`` reads, without a Spark: the stream in one process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from connect.data import Schema, SourceBatch, SourceRecord
from connect.errors import ConnectError
from connectors.spark.datasource.source import SluiceDataSource
from connectors.spark.datasource.stream_offsets import Replay, advanced, known_offsets
from equipment.waiting import wait_until

PLUGINS = Path(__file__).parents[4] / "contract" / "plugins"
COUNTER = {"connector.class": "Counter", "plugin.path": str(PLUGINS), "topic": "n", "seconds": "0"}
Stream = Any


MakeStream = Callable[[Mapping[str, str]], Stream]


@pytest.fixture
def stream() -> Iterator[MakeStream]:
    """Makes streams as Spark does, of columns that the first records show."""
    with ExitStack() as stack:

        def make(options: Mapping[str, str]) -> Stream:
            made = SluiceDataSource({name.lower(): value for name, value in options.items()})
            reader: Stream = made.simpleStreamReader(made.schema())
            stack.callback(reader.stop)
            return reader

        yield make


def values(batches: Iterator[Any], column: str = "value") -> list[Any]:
    return [value for batch in batches for value in batch.column(column).to_pylist()]


def read(reader: Stream, place: Mapping[str, Any], column: str = "value") -> tuple[list[Any], dict[str, Any]]:
    """A micro-batch; the place after it as Spark gives it back, from JSON."""
    rows, after = reader.read(dict(place))
    return values(rows, column), json.loads(json.dumps(after))


class TestStream:
    """A stream goes from place to place."""

    @pytest.fixture
    def shop(self, tmp_path: Path) -> dict[str, str]:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price INTEGER)")
            database.executemany("INSERT INTO orders (price) VALUES (?)", [(n,) for n in range(5)])
            database.commit()
        return {
            "connector.class": "JdbcSource",
            "connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "topic.prefix": "",
            "batch.max.rows": "2",
            "poll.interval.ms": "1",
        }

    def test_has_micro_batches_of_bounded_size(self, stream: MakeStream) -> None:
        reader = stream({**COUNTER, "max.records.per.trigger": "3"})
        first, place = read(reader, reader.initialOffset())
        second, after = read(reader, place)
        assert (first, second) == ([1, 2, 3], [4, 5, 6])
        assert known_offsets(after) == [({"topic": "n"}, {"number": 6})]

    def test_continues_in_another_process(self, stream: MakeStream) -> None:
        options = {**COUNTER, "max.records.per.trigger": "3"}
        _, place = read(stream(options), {})
        assert read(stream(options), place)[0] == [4, 5, 6]

    def test_has_a_batch_again(self, stream: MakeStream) -> None:
        options = {**COUNTER, "max.records.per.trigger": "3"}
        _, start = read(stream(options), {})
        rows, end = read(stream(options), start)
        assert values(stream(options).readBetweenOffsets(start, end)) == rows == [4, 5, 6]

    def test_ends_for_now_with_what_there_is(self, stream: MakeStream, tmp_path: Path, shop: dict[str, str]) -> None:
        reader = stream(shop)
        rows, place = read(reader, {}, "id")
        assert rows == [1, 2, 3, 4, 5]
        assert read(reader, place, "id") == ([], place)
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            database.execute("INSERT INTO orders (price) VALUES (9)")
            database.commit()
        assert read(reader, place, "id")[0] == [6]

    def test_has_a_batch_again_without_what_has_come_since(
        self, stream: MakeStream, tmp_path: Path, shop: dict[str, str]
    ) -> None:
        _, end = read(stream(shop), {}, "id")
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            database.execute("INSERT INTO orders (price) VALUES (9)")
            database.commit()
        assert values(stream(shop).readBetweenOffsets({}, end), "id") == [1, 2, 3, 4, 5]

    def test_fails_if_it_does_not_have_the_records_any_more(
        self, stream: MakeStream, tmp_path: Path, shop: dict[str, str]
    ) -> None:
        _, end = read(stream(shop), {}, "id")
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            database.execute("DELETE FROM orders WHERE id > 3")
            database.commit()
        with pytest.raises(ConnectError, match=r"2 of source partition .* are missing"):
            list(stream(shop).readBetweenOffsets({}, end))

    def test_goes_back_if_spark_does(self, stream: MakeStream) -> None:
        reader = stream({**COUNTER, "max.records.per.trigger": "2"})
        _, place = read(reader, {})
        read(reader, place)
        assert read(reader, place)[0] == [3, 4]

    def test_has_the_tasks_that_the_connector_wants_now(
        self, stream: MakeStream, tmp_path: Path, shop: dict[str, str]
    ) -> None:
        reader = stream({**shop, "tasks.max": "2", "table.poll.interval.ms": "10"})
        rows, place = read(reader, {}, "id")
        with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
            database.execute("CREATE TABLE later (id INTEGER PRIMARY KEY, price INTEGER)")
            database.execute("INSERT INTO later VALUES (70, 7)")
            database.commit()

        def read_on() -> bool:
            nonlocal place
            more, place = read(reader, place, "id")
            rows.extend(more)
            return 70 in rows

        wait_until("the rows of the new table come", read_on, seconds=60)
        assert rows == [1, 2, 3, 4, 5, 70]
        assert [partition["table"] for partition, _ in known_offsets(place)] == ["orders", "later"]

    def test_tells_of_a_task_that_fails(self, stream: MakeStream, tmp_path: Path) -> None:
        (tmp_path / "rows.jsonl").write_text('{"id": 1}\nnonsense\n', encoding="utf-8")
        options = {"connector.class": "DirectorySource", "path": str(tmp_path), "topic": "rows", "settle.ms": "0"}
        reader = stream(options)
        with pytest.raises(ConnectError, match="Tolerance exceeded"):
            reader.read(reader.read({})[1])


def batches(*offsets: Any, partition: str = "a") -> list[SourceBatch]:
    """A batch of a record for each offset, which is its value, too."""
    records = [
        SourceRecord("t", n, Schema.int64(), source_partition={"p": partition}, source_offset={"o": n}) for n in offsets
    ]
    return SourceBatch.from_records(records)


def replayed(start: Mapping[str, Any], end: Mapping[str, Any], *parts: Sequence[SourceBatch]) -> list[Any]:
    replay = Replay(start, end)
    for part in parts:
        replay.take(part)
    return [value for batch in replay.records() for value in batch.value]


class TestPlaces:
    """A place has the offset and the number of records of each source partition."""

    START = advanced({}, batches(1, 2))
    END = advanced(START, batches(3, 4, 5))

    def test_counts_records(self) -> None:
        assert advanced(self.END, batches(7, partition="b")) == {
            '{"p": "a"}': {"offset": {"o": 5}, "records": 5},
            '{"p": "b"}': {"offset": {"o": 7}, "records": 1},
        }

    def test_records_without_a_source_partition_have_none(self) -> None:
        with pytest.raises(ConnectError, match=r"no source partition.*spark\.read"):
            advanced({}, SourceBatch.from_records([SourceRecord("t", 1)]))

    def test_the_same_records_are_found(self) -> None:
        assert replayed(self.START, self.END, batches(3, 4), batches(5, 6), batches(7)) == [3, 4, 5]

    def test_as_are_those_of_several_partitions(self) -> None:
        end = advanced(self.END, batches(7, 8, partition="b"))
        mixed = SourceBatch.from_records([*batches(3)[0], *batches(7, partition="b")[0], *batches(4, 5)[0]])
        assert replayed(self.START, end, mixed, batches(8, 9, partition="b")) == [3, 4, 5, 7, 8]

    def test_records_that_came_between_are_not_lost(self) -> None:
        """The next batch begins after the last offset, so that all up to it belong to this one."""
        assert replayed(self.START, self.END, batches(3, 30, 4, 5, 6)) == [3, 30, 4, 5]

    def test_nor_are_those_after_one_that_is_gone_taken(self) -> None:
        assert replayed(self.START, self.END, batches(3, 5, 6, 7)) == [3, 5]

    def test_records_of_one_offset_stay_together(self) -> None:
        end = advanced(self.START, batches(3, 4, 4))
        assert replayed(self.START, end, batches(3, 4), batches(4, 5)) == [3, 4, 4]

    def test_an_offset_that_never_comes_again_does_not_matter(self) -> None:
        """Some sources count in their offsets how often they were started."""
        assert replayed(self.START, self.END, batches(13, 14, 15, 16, 17, 18, 19)) == [13, 14, 15]

    def test_too_few_records_are_an_error(self) -> None:
        with pytest.raises(ConnectError, match="1 of source partition"):
            replayed(self.START, self.END, batches(13, 14))

    def test_a_replay_is_done_when_all_is_found(self) -> None:
        replay = Replay(self.START, self.END)
        assert not replay.done
        replay.take(batches(3, 4, 5))
        assert replay.done
        assert Replay(self.END, self.END).done
