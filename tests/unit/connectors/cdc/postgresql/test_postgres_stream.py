"""The stream of changes without a server: records, their positions, and what is passed over after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from connect.data import NO_HEADERS, Schema, SourceRecord
from connect.errors import ConnectError
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.envelope import ChangeEvents
from connect.kits.cdc.filters import ColumnRules, KeyRules, NameFilter
from connect.kits.cdc.table_schemas import ConversionFailureMode, TableSchemas
from connect.kits.cdc.tables import Column, Table, TableId
from connect.kits.cdc.topics import TopicNaming
from connect.kits.cdc.transactions import TransactionMetadata
from connectors.cdc.postgresql.offsets import Position
from connectors.cdc.postgresql.pgoutput import Relation, RelationColumn, split_of, whole_row_of
from connectors.cdc.postgresql.replication import PAYLOAD
from connectors.cdc.postgresql.stream import SOURCE_SCHEMA, ChangeStream, StreamedTable, StreamNames
from unit.connectors.cdc.postgresql import messages as sent

PARTITION = {"server": "srv"}
COLUMNS = (("id", 23, True), ("v", 25, False))
NUMBERED = (*COLUMNS, ("n", 23, False))
"""With a number that must not be null."""


class Dialect:
    """Numbers are of type 23, everything else is text."""

    def conversion(self, column: Column) -> Conversion:
        return Conversion(Schema.int32(), int) if column.native == 23 else Conversion(Schema.string(), bytes.decode)


SCHEMAS = TableSchemas(
    Dialect(),
    TopicNaming("srv"),
    SOURCE_SCHEMA,
    columns=ColumnRules(),
    keys=KeyRules(),
    placeholder="?",
    on_failure=ConversionFailureMode.FAIL,
)


def look_up(relation: Relation) -> StreamedTable:
    """Every table is captured but one."""
    name = f"public.{relation.table}"
    split = split_of(len(relation.columns))
    if relation.table == "other":
        return StreamedTable(name, None, split, "public", relation.table, has_old_key=False)
    columns = tuple(
        Column(each.name, "int4", optional=each.name != "n" and not each.is_key, native=each.type_oid)
        for each in relation.columns
    )
    key = () if relation.table == "nokey" else ("id",)
    schema = SCHEMAS.of(Table(TableId("shop", "public", relation.table), columns, key))
    has_old_key = any(each.is_key for each in relation.columns)
    whole_row = whole_row_of(len(columns), schema)
    return StreamedTable(name, schema, split, "public", relation.table, has_old_key, whole_row)


def stream_at(position: Position, *, tells_transactions: bool = False) -> ChangeStream:
    return ChangeStream(
        StreamNames("1", "srv", "shop", "srv.message"),
        ChangeEvents(PARTITION, NO_HEADERS, skipped={"t"}),
        look_up,
        SCHEMAS.with_nulls,
        position,
        PARTITION,
        metadata=TransactionMetadata("srv.transaction", PARTITION) if tells_transactions else None,
        prefixes=NameFilter(),
    )


def records(stream: ChangeStream, *messages: bytes) -> list[SourceRecord]:
    """Return the records that messages become."""
    stream.out = []
    for message in messages:
        stream.handle(message)
    return stream.out


def told(found: Sequence[SourceRecord]) -> list[Any]:
    return [(record.value["op"], record.key["id"]) if record.value else ("-", record.key["id"]) for record in found]


TRANSACTION = (
    sent.begin(100, 7),
    sent.relation(1, "t", COLUMNS),
    sent.insert(100, 1, 1, "a"),
    sent.insert(100, 1, 2, "b"),
    sent.insert(100, 1, 3, "c"),
    sent.update(120, 1, None, (1, sent.UNCHANGED)),
    sent.update(130, 1, (1, None), (9, "z")),
    sent.delete(140, 1, (2, None)),
    sent.commit(150),
)


def test_a_transaction_becomes_records() -> None:
    found = records(stream_at(Position(90)), *TRANSACTION)

    assert told(found) == [
        ("c", 1),
        ("c", 2),
        ("c", 3),
        ("u", 1),
        ("d", 1),
        ("-", 1),
        ("c", 9),
        ("d", 2),
        ("-", 2),
    ]
    assert found[3].value["after"] == {"id": 1, "v": "?"}
    assert found[0].value["source"]["sequence"] == '["90","100"]'


@pytest.mark.parametrize("place", range(9))
def test_a_stream_goes_on_after_any_record(place: int) -> None:
    """The offset of each record leads to the next one, or to the whole of a change that it is a part of."""
    whole = records(stream_at(Position(90)), *TRANSACTION)
    offset = whole[place].source_offset
    rest = records(stream_at(Position.from_offset(offset)), *TRANSACTION)

    # A record that is not the last of its change leads to the beginning of that.
    begun = {4: 4, 5: 4, 7: 7}.get(place, place + 1)
    assert told(rest) == told(whole[begun:])


def test_while_events_are_passed_over_the_offset_stays_where_it_was() -> None:
    """A heartbeat carries it: were it an earlier one, these events would come again after the next start."""
    offset = records(stream_at(Position(90)), *TRANSACTION)[2].source_offset
    stream = stream_at(Position.from_offset(offset))
    carried = [stream.offset()]
    for message in TRANSACTION[:5]:
        stream.handle(message)
        carried.append(stream.offset())

    assert {Position.from_offset(each) for each in carried} == {Position(90, 100, 3, 7)}
    assert Position.from_offset(records(stream, *TRANSACTION[5:])[-1].source_offset).event_lsn == 140
    assert Position.from_offset(stream.offset()) == Position(150)


def test_a_transaction_without_one_before_it_is_gone_on_with() -> None:
    """Debezium names none for the first one after a snapshot; an empty offset would be no offset at all."""
    theirs = {"lsn_proc": 100, "lsn_events_processed": 1, "messageType": "INSERT", "lsn": 100, "txId": 7, "ts_usec": 1}
    stream = stream_at(Position.from_offset(theirs))

    assert Position.from_offset(stream.offset()) == Position(None, 100, 1, 7)
    assert told(records(stream, *TRANSACTION))[:2] == [("c", 2), ("c", 3)]


def test_a_key_that_was_not_sent_again_is_that_of_the_old_row() -> None:
    """It did not change, but is so large that it is kept outside the row."""
    (found,) = records(
        stream_at(Position(90)),
        sent.begin(100, 7),
        sent.relation(1, "t", (("id", 25, True), ("v", 25, False))),
        sent.update(110, 1, ("large", None), (sent.UNCHANGED, sent.UNCHANGED)),
    )
    assert (found.key, found.value["op"], found.value["after"]) == ({"id": "large"}, "u", {"id": "large", "v": "?"})


def test_only_the_transaction_that_was_begun_is_passed_over() -> None:
    """The same positions in another transaction are new: the one that was begun is not published any more."""
    offset = records(stream_at(Position(90)), *TRANSACTION)[1].source_offset
    stream = stream_at(Position.from_offset(offset))

    assert told(records(stream, sent.begin(100, 8), *TRANSACTION[1:4], sent.commit(150))) == [("c", 1), ("c", 2)]


def test_events_that_are_left_out_count() -> None:
    """The position counts what the server sends, not what the configuration lets through."""
    other = (sent.relation(2, "other", COLUMNS), sent.insert(100, 2, 1, "x"))
    transaction = (sent.begin(100, 7), *other, sent.relation(1, "t", COLUMNS), sent.insert(100, 1, 1, "a"))
    (found,) = records(stream_at(Position(90)), *transaction)

    assert found.source_offset["lsn_events_processed"] == 2
    assert records(stream_at(Position.from_offset(found.source_offset)), *transaction) == []


def test_transactions_are_counted_from_their_beginning_after_a_restart() -> None:
    stream = stream_at(Position(90), tells_transactions=True)
    whole = records(stream, *TRANSACTION)
    second = next(record for record in whole if record.value and record.value.get("op") == "u")
    rest = records(stream_at(Position.from_offset(second.source_offset), tells_transactions=True), *TRANSACTION)

    assert [record.value.get("transaction") for record in rest if record.value and "op" in record.value] == [
        {"id": "7:130", "total_order": 5, "data_collection_order": 5},
        {"id": "7:130", "total_order": 6, "data_collection_order": 6},
        {"id": "7:140", "total_order": 7, "data_collection_order": 7},
    ]
    assert rest[-1].value["event_count"] == 7
    assert [record.value["status"] for record in rest if record.topic == "srv.transaction"] == ["END"]


def test_a_position_is_passed_between_transactions_only() -> None:
    stream = stream_at(Position(90))
    records(stream, *TRANSACTION[:3])
    assert stream.pass_to(500) is None
    records(stream, sent.commit(150))
    offset = stream.pass_to(500)

    assert offset is not None
    assert offset["lsn_commit"] == 500
    assert stream.pass_to(400) is None


def test_a_message_between_transactions_moves_the_position_behind_it() -> None:
    stream = stream_at(Position(90))
    (found,) = records(stream, sent.message(95, "p", b"x", is_transactional=False))

    assert found.value["message"] == {"prefix": "p", "content": b"x"}
    assert Position.from_offset(found.source_offset) == Position(96)


def test_a_deletion_without_its_key_is_an_error() -> None:
    columns = (("id", 23, False), ("v", 25, False))
    with pytest.raises(ConnectError, match=r"Set message.key.columns to the columns of that index"):
        records(
            stream_at(Position(90)),
            sent.begin(100, 7),
            sent.relation(1, "t", columns, identity="i"),
            sent.delete(100, 1, (None, "x")),
        )


def test_a_row_of_other_columns_is_an_error() -> None:
    with pytest.raises(ConnectError, match="a row of 3 columns for a table of 2"):
        records(stream_at(Position(90)), sent.begin(1, 7), sent.relation(1, "t", COLUMNS), sent.insert(100, 1, 1, 2, 3))


def test_null_from_before_it_was_forbidden_changes_the_schema_until_the_table_is_told_again() -> None:
    found = records(
        stream_at(Position(90)),
        sent.begin(100, 7),
        sent.relation(1, "t", (("id", 23, True), ("n", 25, False))),
        sent.insert(100, 1, 1, "a"),
        sent.insert(110, 1, 2, None),
        sent.insert(120, 1, 3, "c"),
        sent.relation(1, "t", (("id", 23, True), ("n", 25, False))),
        sent.delete(130, 1, (3, None)),
        sent.commit(150),
    )
    events = [record for record in found if record.value is not None]

    assert [event.value["after"] and event.value["after"]["n"] for event in events] == ["a", None, "c", None]
    assert [event.value_schema.field("after").schema.field("n").schema.optional for event in events] == [
        False,
        True,
        True,
        False,
    ]


def numbered() -> StreamedTable:
    columns = tuple(RelationColumn(name, is_key, kind, -1) for name, kind, is_key in NUMBERED)
    return look_up(Relation(1, "public", "t", "d", columns))


def test_whole_rows_are_those_of_their_parts() -> None:
    table = numbered()
    assert table.schema is not None
    assert table.whole_row is not None
    for row in ((1, "a", 2), (-5, "", 0), (7, None, 1), (8, "x" * 70_000, 9)):
        message = sent.insert(100, 1, *row)
        expected = table.schema.row(table.split(message, PAYLOAD + 6)[0])
        assert table.whole_row(message, PAYLOAD + 6) == expected
        assert list(expected) == ["id", "v", "n"]


@pytest.mark.parametrize(
    "row",
    [(1, "a", None), (1, sent.UNCHANGED, 2), ("one", "a", 2), (1, "a")],
    ids=["forbidden null", "not sent", "no number", "columns"],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_parts(row: Sequence[object]) -> None:
    whole_row = numbered().whole_row
    assert whole_row is not None
    assert whole_row(sent.insert(100, 1, *row), PAYLOAD + 6) is None


def test_rows_of_a_table_without_a_key_have_none() -> None:
    stream = stream_at(Position(90))
    (found,) = records(stream, sent.begin(100, 7), sent.relation(1, "nokey", COLUMNS), sent.insert(100, 1, 1, "a"))
    assert (found.key, found.key_schema, found.value["after"]) == (None, None, {"id": 1, "v": "a"})
