"""Splits of a list: ranges of its pages, if the server reports how many records there are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from connect.data import Offset
from connect.errors import ConnectError, RetriableError
from connect.kits.http.messages import NoAnswerError, Request, Response
from connect.source import SPLIT_OF
from connectors.http.background import LOOK, Background, Wait, await_outcome
from connectors.http.client_config import http_client
from connectors.http.items import Items
from connectors.http.list_reading import ListReading, Look
from connectors.http.paging import Paging
from connectors.http.places import Place
from connectors.http.source_config import EVERYTHING, HttpSourceConfig
from connectors.http.steps import Ask, Outcome, Rest, Steps, TryLater

__all__ = ["ListSplits", "divided"]

_A_RANGE: Final = 5
"""The smallest number of pages worth a split."""


class ListSplits:
    """Divides the new part of a list. Used by the connector's thread alone.

    One request finds out whether there is anything new, and how many records. The list is a single split if the server
    does not report a total, or if publishing depends on the newest record.
    """

    def __init__(self, config: HttpSourceConfig, partition: Mapping[str, str], wait: Wait) -> None:
        self._config = config
        self._wait = wait
        self._paging = Paging(config)
        self._has_fields = Items(config).has_fields
        self._reading = ListReading(config, partition)
        self._client = http_client(config)
        self._background: Background[Response] = Background("http splits")
        self._looking: tuple[Place, Steps[Look]] | None = None
        self._next_reading = 0.0

    def next(self, kept: Offset | None, max_splits: int) -> list[dict[str, str]]:
        """Return the keys that each split adds to the connector's configuration; ``kept`` is the stored offset."""
        initial = self._config.initial_fields()
        place = Place.from_offset(kept) if kept else Place(initial, initial)
        if place.is_done or (kept and place.is_start and time.monotonic() < self._next_reading):
            return []
        splits: list[dict[str, str]] = [{}]
        if self._is_divisible(place):
            look = self._look(place)
            splits = self._divided(place, look.total, max_splits) if look.has_news else []
        self._next_reading = time.monotonic() + self._reading.pause(place, found=True)
        return splits

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._background.close()

    def _is_divisible(self, place: Place) -> bool:
        if not self._paging.tells_total or (place.fields and self._config.record_filter != EVERYTHING):
            return False
        # A split does not know the newest record of the other splits, where the next reading continues.
        return self._config.http_paging_end != "restart" or not (self._has_fields and self._config.uses_newest_record)

    def _divided(self, place: Place, total: int | None, max_splits: int) -> list[dict[str, str]]:
        a_page = self._paging.size if self._paging.mode == "offset" else 1
        first = self._paging.number(place.page)
        skipped = (first - self._paging.number(None)) * (self._paging.size // a_page)
        pages = -(-max(0, (total or 0) - skipped) // self._paging.size)
        return divided(first, pages, a_page, max_splits)

    def _look(self, place: Place) -> Look:
        """Query the server; attempts are counted until it answers."""
        if self._looking is None or self._looking[0] != place:
            self._looking = place, self._reading.look(place)
        try:
            found = self._done(self._looking[1])
        except RetriableError:
            raise
        except ConnectError as error:
            self._looking = None
            raise ConnectError(self._client.hide(str(error))) from None
        self._looking = None
        return found

    def _done(self, steps: Steps[Look]) -> Look:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                found: Look = end.value
                return found
            outcome = None
            match step:
                case Ask(request):
                    outcome = self._outcome(request)
                case Rest(seconds):
                    self._wait(seconds)
                case TryLater(reason, seconds):
                    raise RetriableError(self._client.hide(reason), retry_after=max(seconds, LOOK))

    def _outcome(self, request: Request) -> Outcome:
        if not self._background.is_busy:
            self._background.begin(lambda: self._client.send(request))
        while (found := await_outcome(self._background, self._wait)) is None:
            if not self._wait(LOOK):
                self._looking = None
                raise RetriableError("The server did not answer before the connector was paused or stopped.")
        response, error = found
        if error is not None and not isinstance(error, NoAnswerError):
            raise error
        return response if error is None else error


def divided(first: int, pages: int, a_page: int, max_splits: int, *, a_range: int = _A_RANGE) -> list[dict[str, str]]:
    """Return the ranges of ``pages`` pages from ``first`` on, as keys of splits, in order.

    The first range begins where reading is, possibly in the middle of a page; the last one goes to the end of the list,
    wherever that is by then.
    """
    count = min(max_splits, pages // a_range)
    if count < 2:
        return [{}]
    ends = [str(first + a_page * (pages * number // count)) for number in range(1, count)]
    bounds: list[str | None] = [None, *ends, None]
    return [
        {SPLIT_OF: "list"} | {key: at for key, at in (("split.first", begin), ("split.end", end)) if at is not None}
        for begin, end in pairwise(bounds)
    ]
