"""Events that the server sends in fragments, since they are larger than a document may be.

The servers that tests run are too old for it: a client that answers as later ones do takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Self, TypeAlias

import pytest
from bson import Timestamp, decode, encode
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

from connect.kits.mongodb.fragments import Fragments, can_split
from connectors.cdc.mongodb import positions as debezium
from connectors.cdc.mongodb.config import MongoDbConfig
from connectors.cdc.mongodb.stream import StreamReader as CaptureReader
from connectors.mongodb.source import positions as official
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.stream import StreamReader as SourceReader

LARGE = {"operationType": "update", "clusterTime": Timestamp(5, 1), "fullDocument": {"v": 1}, "before": {"v": 0}}
CONFIG = {"name": "c", "topic.prefix": "p", "mongodb.connection.string": "mongodb://h", "snapshot.mode": "no_data"}


def event(token: str, **fields: Any) -> RawBSONDocument:
    return RawBSONDocument(encode({"_id": {"_data": token}, **fields}))


WAITS: Final = event("waits")
"""In its place the server has nothing yet."""


def fragments(*names: str) -> list[RawBSONDocument]:
    """The large event, with each of its other fields in a fragment of its own."""
    common = {name: LARGE[name] for name in ("operationType", "clusterTime")}
    parts = [common, *({name: LARGE[name]} for name in names)]
    return [
        event(f"2-{number}", **part, splitEvent={"fragment": number, "of": len(parts)})
        for number, part in enumerate(parts, start=1)
    ]


class Stream:
    """A change stream: two small events, and between them a large one that it sends only in fragments.

    A server that waits between two of them tells its last token again.
    """

    alive = True

    def __init__(self, found: Sequence[RawBSONDocument | None], after: Mapping[str, Any] | None) -> None:
        self._found = list(found)
        self.resume_token = after
        if after is not None:
            places = [each is not None and each["_id"]["_data"] for each in self._found]
            if after["_data"] not in places:
                raise OperationFailure("the resume token is that of a fragment", 280)
            self._found = self._found[places.index(after["_data"]) + 1 :]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def try_next(self) -> RawBSONDocument | None:
        if not self._found:
            return None
        if (found := self._found.pop(0)) is None:
            raise OperationFailure("BSONObj size: 30000434 is invalid", 10334)
        if found is WAITS:
            return None
        self.resume_token = found["_id"]
        return found


class Client:
    """The client of a server of a version, which sends small and large events."""

    def __init__(self, *version: int, waits: bool = False) -> None:
        self._version = version
        self._waits = waits
        self.has_small = True
        self.begins_at: Mapping[str, Any] | None = None
        """The position that the server tells of a stream that is opened without one."""

    def server_info(self) -> dict[str, Any]:
        return {"versionArray": [*self._version, 0]}

    def watch(
        self, stages: Sequence[Mapping[str, Any]], *, start_after: Mapping[str, Any] | None = None, **_: Any
    ) -> Stream:
        before = [event("1", operationType="insert", clusterTime=Timestamp(4, 1))] if self.has_small else []
        after = event("3", operationType="insert", clusterTime=Timestamp(6, 1))
        large: list[RawBSONDocument | None] = [None]
        if stages and stages[-1] == {"$changeStreamSplitLargeEvent": {}}:
            large = [*fragments("fullDocument", "before")]
        if self._waits:
            large = [each for part in large for each in (part, WAITS)]
        stream = Stream([*before, *large, after], start_after)
        stream.resume_token = start_after or self.begins_at
        return stream


class Captured:
    """Debezium's form of the connector."""

    def changes(self, client: Any, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        position = None if offset is None else debezium.position_of(offset)
        return CaptureReader(client, MongoDbConfig.parse(CONFIG), position).read(lambda: False)

    def offset(self, token: str) -> Mapping[str, Any]:
        return debezium.offset_of({"_data": token})

    def position(self, offset: Mapping[str, Any]) -> Any:
        return debezium.position_of(offset)


class Official:
    """MongoDB's own form."""

    def __init__(self, pipeline: str = "") -> None:
        self._props = {"name": "c", "connection.uri": "mongodb://h", "pipeline": pipeline or "[]"}

    def changes(self, client: Any, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        position = None if offset is None else official.position_of(offset)
        return SourceReader(client, MongoSourceConfig.parse(self._props), position).read(lambda: False)

    def offset(self, token: str) -> Mapping[str, Any]:
        return official.stream_offset({"_data": token})

    def position(self, offset: Mapping[str, Any]) -> Any:
        return official.position_of(offset)


Form: TypeAlias = Captured | Official
both = pytest.mark.parametrize("form", [Captured(), Official()], ids=["debezium", "official"])


def events(items: Iterator[Any]) -> Iterator[Any]:
    """Leave out positions without an event."""
    return (item for item in items if item.event is not None)


@pytest.mark.parametrize(
    ("version", "can"),
    [
        ((5, 0, 9), False),
        ((6, 0, 8), False),
        ((6, 0, 9), True),
        ((6, 3, 1), False),
        ((7, 0, 0), True),
        ((8, 2, 1), True),
    ],
)
def test_versions_that_split(version: tuple[int, ...], *, can: bool) -> None:
    assert can_split(Client(*version)) is can  # type: ignore[arg-type]


def test_fragments_become_the_event() -> None:
    parts = Fragments()
    first, second, third = fragments("fullDocument", "before")
    assert [parts.whole(each) for each in (first, second)] == [None, None]
    whole = parts.whole(third)
    assert whole is not None
    assert decode(whole.raw) == {"_id": {"_data": "2-3"}, **LARGE}
    small = event("3")
    assert parts.whole(small) is small


def test_fragments_without_their_end_are_forgotten() -> None:
    parts = Fragments()
    parts.whole(event("1-1", old=1, splitEvent={"fragment": 1, "of": 2}))
    first, second = fragments("fullDocument")
    parts.whole(first)
    whole = parts.whole(second)
    assert whole is not None
    assert "old" not in decode(whole.raw)


@both
def test_a_stream_goes_on_in_fragments_where_an_event_is_too_large(form: Form) -> None:
    large = next(events(form.changes(Client(7, 0, 1), form.offset("1"))))

    assert decode(large.event) == {"_id": {"_data": "2-3"}, **LARGE}
    position = form.position(large.offset)
    assert (position.token, position.is_split) == ({"_data": "2-3"}, True)
    # The server takes the position of a fragment only with the stage that splits.
    last = next(events(form.changes(Client(7, 0, 1), large.offset)))
    assert decode(last.event)["_id"] == {"_data": "3"}
    assert not form.position(last.offset).is_split


@both
def test_a_large_event_that_is_the_first_of_all_is_read(form: Form) -> None:
    """A stream that is opened anew without a position would begin after it."""
    client = Client(7, 0, 1)
    client.has_small = False
    assert decode(next(events(form.changes(client, None))).event)["before"] == {"v": 0}


@both
def test_where_a_stream_begins_is_told_before_anything_is_waited_for(form: Form) -> None:
    """Whoever loses the connection then goes on there: a stream that is opened anew would begin later."""
    client = Client(7, 0, 1)
    client.begins_at = {"_data": "0"}
    first, second = islice(form.changes(client, None), 2)

    assert (first.event, form.position(first.offset).token) == (None, {"_data": "0"})
    assert decode(second.event)["_id"] == {"_data": "1"}


@both
def test_no_position_leads_into_a_large_event(form: Form) -> None:
    """A server that waits between fragments, and after the last of them, tells the tokens of these."""
    found = form.changes(Client(7, 0, 1, waits=True), form.offset("1"))
    told = [form.position(next(found).offset) for _ in range(3)]
    tokens = [(position.token["_data"], position.is_split) for position in told]
    assert tokens == [("2-3", True), ("2-3", True), ("3", False)]


@both
def test_older_servers_fail(form: Form) -> None:
    with pytest.raises(OperationFailure, match="30000434"):
        next(events(form.changes(Client(6, 0, 5), form.offset("1"))))


def test_fragments_that_a_pipeline_asks_for_come_as_they_are() -> None:
    form = Official('[{"$changeStreamSplitLargeEvent": {}}]')
    found = events(form.changes(Client(7, 0, 1), form.offset("1")))
    assert [decode(next(found).event)["splitEvent"]["fragment"] for _ in range(3)] == [1, 2, 3]
