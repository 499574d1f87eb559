"""How an index is read to its end, again and again: which request comes next, and which documents an answer brings.

Pure: a generator of steps, whose requests others send. Documents are read in the order of the cursor fields. All that
have the same values are read in one answer, and ordered by their ids here: no server sorts by ids without loading them
all into memory, and the order that it offers in its place ends with a point in time, or with the node.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import quote

import orjson

from connect.errors import ConnectError
from connect.kits.http.messages import Response
from connectors.elasticsearch.cluster import refusal
from connectors.elasticsearch.positions import Key, Position

__all__ = [
    "MOST_DOCUMENTS",
    "Ask",
    "Hit",
    "IndexReading",
    "Selection",
    "Step",
    "TooLarge",
    "UnreadError",
    "cursor_problem",
]

MOST_DOCUMENTS: Final = 10_000
"""The most documents in an answer (``index.max_result_window``)."""

_KEEP_ALIVE: Final = "5m"
_NOT_FOUND: Final = 404
_NO_HANDLER: Final = (400, 405)
_LOST_POINT: Final = b"search_context_missing_exception"
_MISSING_INDEX: Final = b"index_not_found_exception"
_FILTER: Final = (
    "filter_path=_shards.total,_shards.successful,timed_out,pit_id,hits.hits._id,hits.hits._index,hits.hits.sort,"
    "hits.hits._source"
)
_WHOLE: Final = "allow_partial_search_results=false"
_SORTABLE: Final = frozenset(
    {
        *("long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long"),
        *("date", "date_nanos", "keyword", "constant_keyword", "wildcard"),
    }
)
_log = logging.getLogger(__name__)


class Ask(NamedTuple):
    """A request that comes next."""

    method: str
    path: str
    body: object = None


@dataclass(slots=True)
class Hit:
    """A document, and its place in the order. ``after`` is the cursor before its own, if there is one."""

    id: str
    index: str
    cursor: Key
    source: Any
    after: Key | None = None

    @property
    def position(self) -> Position:
        """The position after it."""
        return Position(self.cursor, self.id, self.index, self.after)


class Step(NamedTuple):
    """Documents to publish, and the request that comes next, if one does; or the end of a round."""

    hits: Sequence[Hit]
    ask: Ask | None = None
    is_end: bool = False


class TooLarge(NamedTuple):
    """In place of an answer: it was larger than what is taken."""

    reason: str


class UnreadError(Exception):
    """The round ends here, and begins anew: the index is gone, or the point in time is."""


Answer: TypeAlias = Response | TooLarge
Steps: TypeAlias = Generator[Step, Answer | None, None]
_Asking: TypeAlias = Generator[Step, Answer | None, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which documents are read, in which order, and how many at once.

    ``delay`` is how many seconds the highest cursor must have been there before documents up to it are read.
    ``awaits_indexes`` says whether an index that does not exist is waited for.
    """

    fields: tuple[str, ...]
    query: Mapping[str, Any] | None = None
    source: Any = True
    size: int = 1000
    delay: float = 0.0
    awaits_indexes: bool = True


class IndexReading:
    """The reading of one index, data stream or alias. ``clock`` is the time in seconds."""

    def __init__(self, index: str, selection: Selection, position: Position, clock: Callable[[], float]) -> None:
        self.index = index
        self.position = position
        self.is_at_end = False
        self._path = f"/{quote(index, safe='')}"
        self._selection = selection
        self._size = selection.size
        self._most = MOST_DOCUMENTS
        """How many documents may be asked for in this round: fewer, once so many were too large."""
        self._clock = clock
        self._tops: deque[tuple[float, Key]] = deque()
        self._point: str | None = None
        self._is_opensearch: bool | None = None
        """Which way to make a point in time the server knows; None until it was asked."""
        self._has_points = True

    def steps(self) -> Steps:
        """Yield what to do; a request is answered by ``send``. After the end of a round the next one begins."""
        is_checked, told = False, ""
        while True:
            self.is_at_end = False
            try:
                if not is_checked:
                    yield from self._checked()
                    is_checked = True
                yield from self._round()
            except UnreadError as reason:
                level = logging.DEBUG if str(reason) == told else logging.WARNING
                _log.log(level, "%s is read again in a while: %s", self.index, reason)
                told, self._point = str(reason), None
            yield Step((), is_end=True)

    # -- a round ---------------------------------------------------------------------------------------------------

    def _round(self) -> _Asking:
        self._most = MOST_DOCUMENTS
        yield from self._opened()
        bound, is_all = yield from self._bound()
        if bound is not None and (self.position.cursor is None or bound >= self.position.cursor):
            yield from self._pages(bound)
        yield from self._closed()
        self.is_at_end = is_all

    def _bound(self) -> _Asking:
        """Find up to which cursor documents are read now, and whether there are none above it."""
        found = yield from self._found(None, 1, "desc")
        if not found:
            return None, True
        now, top = self._clock(), found[0].cursor
        if not self._selection.delay:
            return top, True
        if not self._tops or top > self._tops[-1][1]:
            self._tops.append((now, top))
        bound: Key | None = None
        for seen, each in self._tops:
            if now - seen < self._selection.delay:
                break
            bound = each
        while len(self._tops) > 1 and now - self._tops[1][0] >= self._selection.delay:
            self._tops.popleft()
        return bound, bound is not None and bound >= top

    def _pages(self, bound: Key) -> _Asking:
        after, hits = self.position.after, list[Hit]()
        while True:
            # The next answer is on its way while the documents of the last one are published.
            size = self._size
            answer = yield Step(hits, self._search(after, size, "asc"))
            hits = []
            if isinstance(answer, TooLarge):
                self._shrink(answer)
                continue
            found = self._read(answer)
            is_full = len(found) >= size
            whole, last = self._whole(found, after, is_full=is_full)
            if is_full and not whole:
                self._grow(found)
                continue
            self._size = min(size, self._selection.size)
            hits = [hit for hit in whole if hit.cursor <= bound and not self.position.passed(*_place(hit))]
            if hits:
                self.position = hits[-1].position
            if not is_full or (last is not None and last > bound):
                yield Step(hits, self._closing())
                return
            after = last

    def _whole(self, found: Sequence[Hit], after: Key | None, *, is_full: bool) -> tuple[list[Hit], Key | None]:
        """Return the documents of those cursors that are in an answer to the last, in their order, and the last cursor.

        If the answer is full, there may be more with its last cursor.
        """
        whole: list[Hit] = []
        group: list[Hit] = []
        previous = after
        for hit in found:
            if group and hit.cursor != group[0].cursor:
                whole += _ordered(group, previous)
                previous, group = group[0].cursor, []
            group.append(hit)
        if group and not is_full:
            whole += _ordered(group, previous)
            previous = group[0].cursor
        return whole, previous

    def _grow(self, found: Sequence[Hit]) -> None:
        """Ask for more: there are more documents with the same cursor than an answer had."""
        if self._size >= self._most:
            fields = ",".join(self._selection.fields)
            raise ConnectError(
                f"{self.index} has more documents with the same {fields}, {list(found[0].cursor)}, than can be read at "
                f"once, {self._most}. Add a field to cursor.field that tells them apart, such as a number that is "
                f"unique: cursor.field={fields},number."
            )
        self._size = min(self._most, self._size * 2)

    def _shrink(self, answer: TooLarge) -> None:
        if self._size <= 2:
            raise ConnectError(
                f"The documents of {self.index} are too large to read two at once: {answer.reason}. Leave fields out "
                "with fields.exclude."
            )
        self._most = self._size - 1
        self._size = max(2, self._size // 2)
        _log.info("An answer with documents of %s was too large: asking for %d at once.", self.index, self._size)

    # -- requests --------------------------------------------------------------------------------------------------

    def _checked(self) -> _Asking:
        """Refuse fields by which documents cannot be ordered."""
        fields = ",".join(quote(name, safe="*") for name in self._selection.fields)
        answer = yield Step((), Ask("GET", f"{self._path}/_field_caps?fields={fields}"))
        found = self._json(answer, f"tell the types of {', '.join(self._selection.fields)}")
        for name in self._selection.fields:
            if problem := cursor_problem(self.index, name, found.get("fields", {}).get(name, {})):
                raise ConnectError(problem)
        missing = [{"bool": {"must_not": {"exists": {"field": name}}}} for name in self._selection.fields]
        query = {"bool": {"should": missing, "minimum_should_match": 1, "filter": self._queries}}
        answer = yield Step((), Ask("POST", f"{self._path}/_count", {"query": query}))
        if unread := self._json(answer, "count documents")["count"]:
            _log.warning(
                "%d documents of %s are not read: they lack %s. Name a field in cursor.field that all documents have.",
                unread,
                self.index,
                " or ".join(self._selection.fields),
            )

    @property
    def _queries(self) -> list[Any]:
        return [] if self._selection.query is None else [self._selection.query]

    def _opened(self) -> _Asking:
        """Have a point in time made, in the way that the server knows."""
        if not self._has_points:
            return
        for is_opensearch in (False, True) if self._is_opensearch is None else (self._is_opensearch,):
            path = "/_search/point_in_time" if is_opensearch else "/_pit"
            whole = "&allow_partial_pit_creation=false" if is_opensearch else ""
            answer = yield Step((), Ask("POST", f"{self._path}{path}?keep_alive={_KEEP_ALIVE}{whole}"))
            assert isinstance(answer, Response)
            if answer.status in _NO_HANDLER and self._is_opensearch is None:
                continue
            self._is_opensearch = is_opensearch
            found = self._json(answer, "make a point in time")
            self._check_shards(found)
            self._point = found["pit_id" if is_opensearch else "id"]
            return
        self._has_points = False
        _log.warning(
            "The cluster has no points in time, which Elasticsearch has since 7.10 and OpenSearch since 2.4: each "
            "request sees %s as it is then.",
            self.index,
        )

    def _closing(self) -> Ask | None:
        if self._point is None:
            return None
        point, self._point = self._point, None
        if self._is_opensearch:
            return Ask("DELETE", "/_search/point_in_time", {"pit_id": [point]})
        return Ask("DELETE", "/_pit", {"id": point})

    def _closed(self) -> _Asking:
        if (ask := self._closing()) is not None:
            # Whatever the answer: the server forgets the point by itself, too.
            yield Step((), ask)

    def _found(self, after: Key | None, size: int, order: str) -> _Asking:
        answer = yield Step((), self._search(after, size, order))
        return self._read(answer)

    def _search(self, after: Key | None, size: int, order: str) -> Ask:
        selection = self._selection
        filters = [*({"exists": {"field": name}} for name in selection.fields), *self._queries]
        body: dict[str, Any] = {
            "size": size,
            "query": {"bool": {"filter": filters}},
            "sort": [{name: {"order": order, "mode": "min", "unmapped_type": "long"}} for name in selection.fields],
            "track_total_hits": False,
            "_source": selection.source if order == "asc" else False,
        }
        if after is not None:
            body["search_after"] = list(after)
        if self._point is None:
            return Ask("POST", f"{self._path}/_search?{_WHOLE}&{_FILTER}", body)
        body["pit"] = {"id": self._point, "keep_alive": _KEEP_ALIVE}
        return Ask("POST", f"/_search?{_WHOLE}&{_FILTER}", body)

    # -- answers ---------------------------------------------------------------------------------------------------

    def _read(self, answer: Answer | None) -> list[Hit]:
        found = self._json(answer, f"search by {', '.join(self._selection.fields)}")
        self._check_shards(found)
        self._point = found.get("pit_id", self._point)
        count = len(self._selection.fields)
        return [
            Hit(hit["_id"], hit["_index"], tuple(hit["sort"][:count]), hit.get("_source"))
            for hit in found.get("hits", {}).get("hits", ())
        ]

    def _json(self, answer: Answer | None, what: str) -> Any:
        if isinstance(answer, TooLarge):
            raise ConnectError(f"The cluster cannot {what}: {answer.reason}.")
        assert answer is not None
        if 200 <= answer.status < 300:
            return orjson.loads(answer.body)
        if answer.status == _NOT_FOUND and _MISSING_INDEX in answer.body:
            missing = "does not exist. Create it, or correct index."
            if not self._selection.awaits_indexes:
                raise ConnectError(f"{self.index} {missing}")
            raise UnreadError(f"it {missing}")
        if answer.status == _NOT_FOUND and _LOST_POINT in answer.body:
            raise UnreadError("the point in time has ended.")
        raise ConnectError(
            f"The cluster refuses to {what} in {self.index}: {refusal(answer)}. Grant the rights read and "
            "view_index_metadata, or correct cursor.field and query."
        )

    def _check_shards(self, found: Mapping[str, Any]) -> None:
        """Refuse an answer without the documents of all shards: they would be passed over."""
        shards = found.get("_shards", {})
        if found.get("timed_out") or shards.get("successful") != shards.get("total"):
            raise UnreadError("a shard did not answer.")


def cursor_problem(index: str, name: str, types: Mapping[str, Any]) -> str | None:
    """Return why documents cannot be ordered by a field, if they cannot, by what ``_field_caps`` tells of its types."""
    known = sorted(kind for kind in types if kind != "unmapped")
    if len(known) > 1:
        return (
            f"{name} has different types in the indexes of {index}: {', '.join(known)}. Read those indexes by "
            "connectors of their own."
        )
    if not known:
        return None
    (kind,) = known
    if kind == "text":
        return (
            f"{name} of {index} is a text, by which nothing is ordered: use {name}.keyword, or another field, in "
            "cursor.field."
        )
    if kind not in _SORTABLE:
        return f"{name} of {index} is of type {kind}: cursor.field needs numbers, dates or keywords."
    if not types[kind].get("aggregatable", True):
        return f"{name} of {index} is not ordered by the cluster (doc_values): use another field in cursor.field."
    return None


def _ordered(group: list[Hit], after: Key | None) -> list[Hit]:
    """Return documents with the same cursor by their ids, each with the cursor before theirs."""
    if len(group) > 1:
        group.sort(key=lambda hit: (hit.id, hit.index))
    for hit in group:
        hit.after = after
    return group


def _place(hit: Hit) -> tuple[Key, str, str]:
    return hit.cursor, hit.id, hit.index
