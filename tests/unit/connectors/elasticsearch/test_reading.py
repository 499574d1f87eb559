"""Which requests read an index, and which documents are published after each answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from connect.errors import ConnectError
from connect.kits.http.messages import Response
from connectors.elasticsearch.positions import Position
from connectors.elasticsearch.reading import Ask, Hit, IndexReading, Selection, Step, TooLarge


class Index:
    """An index as a node shows it: what is refreshed, sorted by numbers, and within them as the node likes."""

    def __init__(self, *documents: tuple[int, str]) -> None:
        self.documents = list(documents)
        self.asked: list[Ask] = []
        self.limit = 10_000
        self.failures: list[bytes] = []

    def answer(self, ask: Ask) -> Response | TooLarge:
        self.asked.append(ask)
        if "_search?" not in ask.path:
            return self._other(ask)
        if self.failures:
            return Response(404, {}, self.failures.pop(0), "")
        body: Any = ask.body
        found = sorted(self.documents, key=lambda each: each[0], reverse=body["sort"][0]["n"]["order"] == "desc")
        if "search_after" in body:
            found = [each for each in found if each[0] > int(body["search_after"][0])]
        if body["size"] > self.limit:
            return TooLarge("its answer is larger than 5 bytes")
        hits = [
            {"_id": identity, "_index": "orders", "sort": [number, 7], "_source": {"n": number}}
            for number, identity in found[: body["size"]]
        ]
        shards = {"total": 2, "successful": 2}
        return said({"_shards": shards, "timed_out": False, "pit_id": "point", "hits": {"hits": hits}})

    def _other(self, ask: Ask) -> Response:
        if "_field_caps" in ask.path:
            return said({"fields": {"n": {"long": {"type": "long", "aggregatable": True}}}})
        if "_count" in ask.path:
            return said({"count": 0})
        if ask.path.startswith("/orders/_pit"):
            return said({"error": "no handler found"}, 400)
        return said({"pit_id": "point", "_shards": {"total": 2, "successful": 2}})


def said(body: object, status: int = 200) -> Response:
    return Response(status, {}, json.dumps(body).encode(), "")


class Clock:
    """A time that tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def reading(position: Position | None = None, clock: Clock | None = None, **given: Any) -> IndexReading:
    selection = Selection(("n",), **{"size": 3, **given})
    return IndexReading("orders", selection, position or Position(), clock or Clock())


def rounds(made: IndexReading, index: Index) -> Iterator[list[Hit]]:
    """Yield the documents of each round."""
    steps = made.steps()
    answer: Any = None
    hits: list[Hit] = []
    while True:
        step: Step = steps.send(answer)
        hits += step.hits
        answer = None if step.ask is None else index.answer(step.ask)
        if step.is_end:
            yield hits
            hits = []


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


TIES = ((1, "c"), (1, "a"), (2, "e"), (2, "d"), (2, "b"), (3, "f"))


def test_documents_come_by_cursor_and_id_whatever_the_order_of_the_node() -> None:
    made = reading()
    assert ids(next(rounds(made, Index(*TIES)))) == ["a", "c", "b", "d", "e", "f"]
    assert made.is_at_end
    assert made.position.offset == {"cursor": "[3]", "id": "f", "index": "orders", "after": "[2]"}


def test_reading_goes_on_after_any_document_although_the_node_orders_them_otherwise() -> None:
    all_of_them = next(rounds(reading(), Index(*TIES)))
    for count, hit in enumerate(all_of_them, 1):
        position = Position.from_offset(hit.position.offset)
        assert ids(next(rounds(reading(position), Index(*TIES[::-1])))) == ids(all_of_them[count:])


def test_more_are_asked_for_where_more_than_fit_have_the_same_cursor() -> None:
    index = Index(*((5, f"{number:02}") for number in range(20)), (6, "z"))
    assert ids(next(rounds(reading(), index))) == [*(f"{number:02}" for number in range(20)), "z"]
    sizes = [ask.body["size"] for ask in index.asked if "_search?" in ask.path]  # type: ignore[index]
    assert sizes == [1, 3, 6, 12, 24]


def test_too_many_with_the_same_cursor_need_another_field() -> None:
    index = Index(*((5, f"{number:05}") for number in range(10_001)))
    with pytest.raises(
        ConnectError, match=r"more documents with the same n, \[5\], than can be read at once, 10000\. .*=n,number"
    ):
        next(rounds(reading(size=5000), index))


def test_fewer_are_asked_for_where_an_answer_is_too_large() -> None:
    index = Index(*((number, f"{number}") for number in range(9)))
    index.limit = 4
    assert ids(next(rounds(reading(size=16), index))) == [str(number) for number in range(9)]
    index.limit = 1
    with pytest.raises(ConnectError, match="too large to read two at once: its answer is larger"):
        next(rounds(reading(size=16), index))


def test_documents_with_the_same_cursor_that_are_too_large_together_need_another_field() -> None:
    index = Index(*((5, f"{number}") for number in range(9)))
    index.limit = 4
    with pytest.raises(ConnectError, match=r"than can be read at once, [45]"):
        next(rounds(reading(size=16), index))


def test_a_document_is_read_once_the_highest_cursor_was_there_for_the_delay() -> None:
    clock, index = Clock(), Index((1, "a"))
    made = reading(clock=clock, delay=10.0)
    found = rounds(made, index)
    assert next(found) == []
    assert not made.is_at_end
    clock.now = 5.0
    index.documents += [(4, "d")]
    assert next(found) == []
    clock.now = 10.0
    index.documents += [(3, "late")]
    assert ids(next(found)) == ["a"]
    clock.now = 14.0
    assert next(found) == []
    clock.now = 15.0
    assert ids(next(found)) == ["late", "d"]
    assert made.is_at_end


def test_a_round_begins_anew_when_the_point_in_time_is_gone() -> None:
    index = Index(*TIES)
    found = rounds(reading(), index)
    index.failures = [b'{"error": {"type": "search_context_missing_exception"}}']
    assert next(found) == []
    assert ids(next(found)) == ["a", "c", "b", "d", "e", "f"]


def test_an_answer_without_a_shard_is_not_read() -> None:
    class Half(Index):
        def answer(self, ask: Ask) -> Response | TooLarge:
            answer = super().answer(ask)
            assert isinstance(answer, Response)
            if "_search?" not in ask.path:
                return answer
            return Response(200, {}, answer.body.replace(b'"successful": 2', b'"successful": 1'), "")

    made = reading()
    assert next(rounds(made, Half(*TIES))) == []
    assert not made.is_at_end


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        ({"text": {"aggregatable": False}}, r"n of orders is a text, .*use n\.keyword"),
        ({"ip": {}}, "n of orders is of type ip: cursor.field needs numbers, dates or keywords"),
        ({"long": {"aggregatable": False}}, r"not ordered by the cluster \(doc_values\)"),
        ({"date": {}, "date_nanos": {}}, "different types in the indexes of orders: date, date_nanos"),
    ],
)
def test_fields_without_an_order_are_refused(types: Any, problem: str) -> None:
    class Typed(Index):
        def _other(self, ask: Ask) -> Response:
            return said({"fields": {"n": types}})

    with pytest.raises(ConnectError, match=problem):
        next(rounds(reading(), Typed()))


def test_a_missing_index_is_awaited_unless_the_run_is_to_end() -> None:
    class Missing(Index):
        def _other(self, ask: Ask) -> Response:
            return said({"error": {"type": "index_not_found_exception"}}, 404)

    made = reading()
    assert next(rounds(made, Missing())) == []
    assert not made.is_at_end
    with pytest.raises(ConnectError, match="orders does not exist"):
        next(rounds(reading(awaits_indexes=False), Missing()))


def test_offsets_of_the_java_source_are_continued() -> None:
    position = Position.from_offset({"position": "1"})
    made = rounds(reading(position), index := Index(*TIES))
    assert ids(next(made)) == ["b", "d", "e", "f"]
    first = next(ask for ask in index.asked if "search_after" in str(ask.body))
    assert isinstance(first.body, dict)
    assert first.body["search_after"] == ["1"]
    assert Position.from_offset({"position": "1", "position_secondary": "x"}).after == ("1", "x")


def test_offsets_of_others_are_refused() -> None:
    for offset in (
        {"id": "7"},
        {"cursor": "7", "id": "a", "index": "i"},
        {"cursor": "[7]", "id": 4, "index": "i"},
    ):
        with pytest.raises(ConnectError, match="An offset has the texts"):
            Position.from_offset(offset)
