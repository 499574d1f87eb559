"""The reading of a list: which request comes next, and which records an answer contains. Pure: no waiting, no I/O.

Every record's offset determines the next request. A kill between two pages, or within one, loses nothing: the page
after the last committed record is requested again with the same fields, and the part already read is skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import time
from typing import Any, Final

from connect.data import SourceRecord
from connect.errors import DataError
from connect.kits.http.messages import Request, Response
from connect.kits.json_text import parse_json
from connectors.http.charset import body_text, declared_charset
from connectors.http.exchange import Answer, Exchange
from connectors.http.items import Item, Items, fingerprint
from connectors.http.paging import Circle, Page, Paging
from connectors.http.places import Place, Validators
from connectors.http.selection import Selection
from connectors.http.source_config import EVERYTHING, HttpSourceConfig
from connectors.http.source_requests import SourceRequests
from connectors.http.steps import Malformed, Publish, Rest, Steps

__all__ = ["ListReading", "Look", "response_content"]

_log = logging.getLogger(__name__)


_NO_SUCH_PAGE: Final = frozenset({404, 416})


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An item to publish, and the places before and after it."""

    item: Item | Malformed
    before: Place
    after: Place


@dataclass(frozen=True, slots=True)
class _Contents:
    """The items of a page, the oldest first."""

    items: Sequence[Any]
    marks: Sequence[str]
    """The fingerprint of each item."""
    was_newest_first: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What there is at a place: whether the page ``has_news``, and the ``total`` of the list if it is reported."""

    has_news: bool
    total: int | None = None


class ListReading:
    """Reads a list repeatedly."""

    def __init__(self, config: HttpSourceConfig, partition: Mapping[str, str]) -> None:
        self._config = config
        self._partition = dict(partition)
        self._requests = SourceRequests(config)
        self._paging = Paging(config)
        self._items = Items(config)
        self._exchange = Exchange(config, lambda response: response_content(config, response))
        self._list = Selection(config.http_response_list_pointer.strip(), "http.response.list.pointer")
        self._child_list = Selection(config.http_child_list_pointer.strip(), "http.child.list.pointer")
        self._direction = config.http_response_list_order_direction.upper()
        self._filters = config.record_filter != EVERYTHING and self._items.has_fields
        self._end = config.http_paging_end
        self._split_end = config.split_end
        self._has_warned = False
        self._has_warned_of_total = False
        self._circle = Circle()
        self._previous = ""
        self._last: Page | None = None
        self._is_conditional = (
            config.http_conditional
            and config.http_paging == "none"
            and config.http_child_url is None
            and config.http_request_method == "GET"
            and config.http_paging_end == "restart"
        )

    def steps(self, place: Place) -> Steps[None]:
        """Yield the steps from a place on; they end only if the list is read once, or at the end of a split."""
        if self._config.split_first is not None and self._paging.number(place.page) < self._config.split_first:
            place = place.at(self._config.split_first)
        self._circle, self._previous, self._last = Circle(), "", None
        while not place.is_done and not self._is_behind(place):
            place = yield from self._page(place)

    def look(self, place: Place) -> Steps[Look]:
        """Yield the steps that find out, with one request, what there is at a place."""
        answer = yield from self._exchange.answer(self._requests.page(place, self._paging))
        if not answer.has_content or answer.response is None:
            return Look(has_news=False)
        contents = self._contents(answer.content, place)
        page = Page(answer.response.url, answer.response.headers, answer.content, len(contents.items))
        return Look(_resumed(place, contents.marks) < page.count, self._paging.total(page))

    def pause(self, place: Place, *, found: bool) -> float:
        """Return the seconds between a reading that ended at a place, and ``found`` records or not, and the next."""
        if self._config.http_long_polling:
            return 0.0
        interval = self._config.http_timer_interval_millis / 1000
        newest = self._items.kept_moment(place.newest)
        if found and newest is not None and time() - newest.timestamp() > interval:
            return min(interval, self._config.http_timer_catchup_interval_millis / 1000)
        return interval

    def _is_behind(self, place: Place) -> bool:
        """Return whether a place is beyond the split."""
        return self._split_end is not None and self._paging.number(place.page) >= self._split_end

    def _page(self, place: Place) -> Steps[Place]:
        """Read one page, and return the place after it."""
        request = self._conditional(self._requests.page(place, self._paging), place)
        answer = yield from self._exchange.answer(request, _NO_SUCH_PAGE if place.is_beyond else ())
        if not answer.has_content or answer.response is None:
            if self._last is not None:
                self._check_total(self._last)
            return (yield from self._rested(self._without_records(place, answer), found=False))
        contents = self._new_contents(self._contents(answer.content, place), place)
        page = self._paging.page(answer.response, answer.content, len(contents.items), place)
        read = [self._read(item, mark) for item, mark in zip(contents.items, contents.marks, strict=True)]
        kept, reached = self._unseen(place, read, contents)
        after = self._after(place, page)
        if reached and contents.was_newest_first:
            # The following items are older and were already read.
            after = None
        validators = self._validators(request, answer.response)
        wanted, following = self._wanted(place, contents, read, kept, (after, page, validators))
        yield from self._published(wanted, place.child if wanted and wanted[0].before.child else 0)
        if after is not None:
            return following
        return (yield from self._rested(following, found=bool(wanted)))

    def _after(self, place: Place, page: Page) -> str | int | None:
        if self._split_end is not None:
            return self._paging.within(place.page, page, self._split_end)
        self._last = page
        after = self._paging.after(place.page, page)
        if place.is_start:
            self._circle = Circle()
        if isinstance(after, str):
            self._circle.follow(after)
        if after is None:
            self._check_total(page)
        return after

    def _check_total(self, page: Page) -> None:
        """Warn at the end of a list that has fewer items than the server says."""
        total = self._paging.total(page) if self._paging.counts else None
        if total is not None and page.before + page.count < total and not self._has_warned_of_total:
            self._has_warned_of_total = True
            _log.warning(
                "The list ended after %s items, though the server reports a total of %s. Check "
                "http.paging.total.pointer or http.paging.total.header, and that the request sends ${page.offset} or "
                "${page.number}.",
                page.before + page.count,
                total,
            )

    def _new_contents(self, contents: _Contents, place: Place) -> _Contents:
        """Return the items of a page; none if they are those of the page before again, beyond the end of the list."""
        if not self._paging.counts:
            return contents
        mark = fingerprint(list(contents.marks))
        is_same = place.is_beyond and place.index == 0 and mark == self._previous
        self._previous = mark
        if not is_same or not contents.marks:
            return contents
        _log.warning(
            "Page %s has the same items as the page before it: taking it for the end of the list. Check that the "
            "request sends ${page.offset} or ${page.number}.",
            place.page,
        )
        return replace(contents, items=(), marks=[])

    def _without_records(self, place: Place, answer: Answer) -> Place:
        if self._split_end is not None:
            return place.at(self._split_end)
        if answer.is_silence or self._end == "continue":
            return place
        if self._end == "stop":
            return replace(place.restarted(), is_done=True)
        return place.restarted()

    def _rested(self, place: Place, *, found: bool) -> Steps[Place]:
        if not place.is_done:
            yield Rest(self.pause(place, found=found), is_end=True)
        return place

    # -- the items of an answer ------------------------------------------------------------------------------------

    def _contents(self, content: Any, place: Place) -> _Contents:
        items = self._list.each(content)
        if self._split_end is not None and self._paging.mode == "offset":
            # A server may return more than requested; the rest belongs to the next split.
            items = items[: self._split_end - self._paging.number(place.page)]
        if not items and content is not None and not self._has_warned and self._list.first(content) is None:
            self._has_warned = True
            _log.warning(
                "The answer has nothing at %s. Unless the list is empty, check http.response.list.pointer.",
                self._list.text,
            )
        newest_first = self._is_newest_first(items)
        ordered = items[::-1] if newest_first else items
        return _Contents(ordered, [fingerprint(item) for item in ordered], newest_first)

    def _is_newest_first(self, items: Sequence[Any]) -> bool:
        if self._direction != "IMPLICIT" or len(items) < 2:
            return self._direction == "DESC"
        try:
            first, last = self._items.moment(items[0]), self._items.moment(items[-1])
        except DataError:
            return False
        return first is not None and last is not None and first > last

    def _read(self, content: Any, mark: str = "") -> Item | Malformed:
        try:
            return self._items.read(content, mark)
        except DataError as error:
            return Malformed(SourceRecord(self._config.kafka_topic, content), error)

    def _unseen(
        self, place: Place, read: Sequence[Item | Malformed], contents: _Contents
    ) -> tuple[frozenset[int], bool]:
        """Return the items not seen in an earlier reading, and whether the last one seen is on this page."""
        everything = frozenset(range(len(read)))
        if not self._filters or not place.fields:
            return everything, False
        limit = self._items.kept_moment(place.fields)
        last_seen = -1
        if self._paging.mode == "none" or contents.was_newest_first:
            last_seen = max((index for index, item in enumerate(read) if _is_same(item, place)), default=-1)
        kept = set()
        for index, item in enumerate(read):
            if _is_same(item, place):
                continue
            moment = item.moment if isinstance(item, Item) else None
            is_known = limit is not None and moment is not None
            is_newer = is_known and moment > limit  # type: ignore[operator]
            is_older = is_known and moment < limit  # type: ignore[operator]
            if is_newer or (index > last_seen and not is_older):
                kept.add(index)
        return frozenset(kept), last_seen >= 0

    def _wanted(
        self,
        place: Place,
        contents: _Contents,
        read: Sequence[Item | Malformed],
        kept: frozenset[int],
        ending: tuple[str | int | None, Page, Validators | None],
    ) -> tuple[list[_Wanted], Place]:
        """Return the items to publish, and the place after the page."""
        start = _resumed(place, contents.marks)
        wanted: list[_Wanted] = []
        current = place if start == place.index else replace(place, child=0)
        current = replace(current, index=start, last=contents.marks[start - 1] if start else "")
        for index in range(start, len(read)):
            item, before = read[index], current
            newest, newest_item = current.newest, current.newest_item
            if isinstance(item, Item) and self._is_newest(current, item, is_behind=contents.was_newest_first):
                newest, newest_item = item.fields, item.mark
            current = replace(
                current, newest=newest, newest_item=newest_item, index=index + 1, last=contents.marks[index], child=0
            )
            if index in kept:
                wanted.append(_Wanted(item, before, current))
        following = self._following(current, *ending)
        if wanted and wanted[-1].after.index == len(read):
            wanted[-1] = replace(wanted[-1], after=following)
        return wanted, following

    def _is_newest(self, place: Place, item: Item, *, is_behind: bool) -> bool:
        """Return whether a record is the newest so far, whose fields are used by the next reading."""
        if not item.fields:
            return False
        before = self._items.kept_moment(place.newest)
        if item.moment is not None and before is not None:
            return item.moment >= before
        # In a list with the newest first, the newest record is on the first page.
        return not is_behind or place.page is None

    def _following(self, current: Place, after: str | int | None, page: Page, validators: Validators | None) -> Place:
        """Return the place after the last item of a page."""
        if after is not None:
            if not self._paging.counts or self._split_end is not None:
                return current.at(after)
            received = self._paging.received(after, page)
            return current.beyond(after, received, is_beyond=self._paging.is_last(page))
        if self._end == "continue":
            where, done = self._paging.end(current.page, page)
            return replace(current, page=where, index=done, last=current.last if done else "", child=0)
        ended = replace(current, validators=validators).restarted()
        return replace(ended, is_done=True) if self._end == "stop" else ended

    # -- records ---------------------------------------------------------------------------------------------------

    def _published(self, wanted: Sequence[_Wanted], done: int) -> Steps[None]:
        """Publish the items or their children; ``done`` of the first item's were already published."""
        if self._requests.child is None:
            if wanted:
                yield Publish([self._record(each) for each in wanted])
            return
        for each in wanted:
            if isinstance(each.item, Malformed):
                yield Publish([self._record(each)])
            else:
                yield from self._children(each, each.item, done)
            done = 0

    def _record(self, wanted: _Wanted) -> SourceRecord | Malformed:
        item = wanted.item
        if isinstance(item, Malformed):
            return replace(item, record=self._placed(item.record, wanted.after))
        return self._placed(self._items.record(item), wanted.after)

    def _placed(self, record: SourceRecord, after: Place) -> SourceRecord:
        return record.replace(source_partition=self._partition, source_offset=after.to_offset())

    def _children(self, wanted: _Wanted, item: Item, done: int) -> Steps[None]:
        """Request the child of an item, and publish its records in place of the item."""
        try:
            request = self._requests.of_child(item.content, wanted.before)
        except DataError as error:
            record = self._placed(SourceRecord(self._config.kafka_topic, item.content), wanted.after)
            yield Publish([Malformed(record, error)])
            return
        answer = yield from self._exchange.answer(request)
        if (name := self._config.http_child_field) is not None:
            part = self._child_list.first(answer.content)
            merged = {**item.content, name: part} if isinstance(item.content, dict) else {name: part}
            yield Publish([self._placed(self._items.record(item, merged), wanted.after)])
            return
        records = list(self._child_records(self._child_list.each(answer.content), wanted))
        if records[done:]:
            yield Publish(records[done:])

    def _child_records(self, contents: Sequence[Any], wanted: _Wanted) -> Iterator[SourceRecord | Malformed]:
        for number, content in enumerate(contents, start=1):
            after = wanted.after if number == len(contents) else replace(wanted.before, child=number)
            read = self._read(content)
            if isinstance(read, Malformed):
                yield replace(read, record=self._placed(read.record, after))
            else:
                yield self._placed(self._items.record(read), after)

    # -- conditional requests --------------------------------------------------------------------------------------

    def _conditional(self, request: Request, place: Place) -> Request:
        """Return the request with headers that ask for changes only."""
        known = place.validators
        if not self._is_conditional or known is None or place.index or known.of != fingerprint(request.url):
            return request
        given = {"If-None-Match": known.tag, "If-Modified-Since": known.modified}
        return replace(request, headers={**request.headers, **{k: v for k, v in given.items() if v is not None}})

    def _validators(self, request: Request, response: Response) -> Validators | None:
        tag, modified = response.headers.get("etag"), response.headers.get("last-modified")
        if not self._is_conditional or (tag is None and modified is None):
            return None
        return Validators(fingerprint(request.url), tag, modified)


def response_content(config: HttpSourceConfig, response: Response) -> Any:
    """Return the content of an answer. Raises :class:`~connect.errors.DataError` if it is not of the expected type."""
    if config.http_response_type != "json":
        return body_text(response) or None
    charset = declared_charset(response)
    # JSON shows by itself which of Unicode's encodings it is in.
    is_unicode = charset is None or charset.startswith("utf")
    text = response.body if is_unicode else body_text(response)
    return parse_json(text, "The answer") if text.strip() else None


def _resumed(place: Place, marks: Sequence[str]) -> int:
    """Return how many items of the page were already read.

    If the item read last has moved, reading continues after its current position; if it is gone, the page is read
    again: records may then come twice, but none is lost.
    """
    if not place.index:
        return 0
    if place.index <= len(marks) and place.last in ("", marks[place.index - 1]):
        return place.index
    found = [index for index, mark in enumerate(marks) if mark == place.last]
    if found:
        return found[-1] + 1
    if marks:
        _log.warning("The page has changed since it was read: reading it from the beginning.")
    return 0


def _is_same(item: Item | Malformed, place: Place) -> bool:
    if not isinstance(item, Item) or dict(item.fields) != dict(place.fields):
        return False
    # Offsets of the Java connector do not identify the record.
    return not place.seen_item or item.mark == place.seen_item
