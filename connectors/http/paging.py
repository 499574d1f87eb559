"""Pages of a list: where to continue after an answer, decided from the answer alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from connect.data.excerpt import excerpt
from connect.errors import ConnectError
from connect.kits.http.messages import Response, origin, shown_address
from connectors.http.places import Place
from connectors.http.selection import Selection, selection
from connectors.http.source_config import HttpSourceConfig

__all__ = ["Circle", "Page", "Paging", "next_link"]

_TARGET: Final = re.compile(r"[\s,]*<([^<>]*)>")
_PARAMETER: Final = re.compile(r"\s*;\s*([\w!#$%&'*+.^`|~-]+)\s*(?:=\s*(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;,\"]*)))?")
_MOST_CHARACTERS: Final = 16 * 1024
_NO: Final = frozenset({"", "0", "false", "f", "no", "n", "off", "null", "none"})
"""Texts by which servers say that there are no more pages."""
_TOTAL: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer as paging sees it."""

    url: str
    headers: Mapping[str, str]
    content: Any
    count: int
    """How many items it has."""
    before: int = 0
    """How many items the pages before it had."""
    is_estimate: bool = False
    """Whether the pages before it were not read, so that ``before`` takes them for full."""


class Circle:
    """Notices a list whose pages lead back to themselves, and keeps a single page for it (Brent's algorithm)."""

    def __init__(self) -> None:
        self._kept: str | int | None = None
        self._steps, self._most = 0, 1

    def follow(self, page: str | int) -> None:
        """Go on to a page. Raises :class:`~connect.errors.ConnectError` if the list is a circle."""
        if page == self._kept:
            raise ConnectError(
                f"The pages of the list lead round in a circle: the server gives {excerpt(page)} as the next page a "
                "second time. Check http.paging.next.pointer, and that the request sends the cursor it is given."
            )
        self._steps += 1
        if self._steps == self._most:
            self._kept, self._steps, self._most = page, 0, self._most * 2


class Paging:
    """How a server divides a list into pages."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self.mode = config.http_paging
        self.size = config.http_paging_size
        self._start = config.http_paging_start
        self._stays = config.http_paging_end == "continue" and self.mode == "page"
        self._begins_later = config.split_first is not None
        self._own = origin(config.http_request_url.partition("${")[0])
        self._next: Selection | None = selection(config.http_paging_next_pointer, "http.paging.next.pointer")
        self._more: Selection | None = selection(config.http_paging_more_pointer, "http.paging.more.pointer")
        self._total: Selection | None = selection(config.http_paging_total_pointer, "http.paging.total.pointer")
        self._total_header = (config.http_paging_total_header or "").strip().lower()
        in_query = config.auth_type == "API_KEY" and config.http_auth_api_key_in == "query"
        self._credential = config.http_auth_api_key_name if in_query else None

    def names(self, page: str | int | None) -> dict[str, Any]:
        """Return the values of ``${page...}`` for a page."""
        names: dict[str, Any] = {"size": self.size}
        if self.mode == "cursor":
            names["cursor"] = page
        elif self.mode == "offset":
            names["offset"] = self.number(page)
        elif self.mode == "page":
            names["number"] = self.number(page)
        return names

    def link(self, page: str | int | None) -> str | None:
        """Return the URL of a page identified by its link."""
        return page if self.mode in ("next_link", "link_header") and isinstance(page, str) else None

    def after(self, page: str | int | None, answer: Page) -> str | int | None:
        """Return the page after an answer; ``None`` if it was the last one."""
        if self._more is not None and not _is_yes(self._more.first(answer.content)):
            return None
        match self.mode:
            case "next_link":
                found: Any = self._found(answer)
                following: str | int | None = None if found is None else self._checked(answer.url, found)
            case "link_header":
                target = next_link(answer.headers.get("link", ""))
                following = None if target is None else self._checked(answer.url, target)
            case "cursor":
                following = self._found(answer)
            case "offset" if self._goes_on(answer):
                following = self.number(page) + answer.count
            case "page" if self._goes_on(answer):
                following = self.number(page) + 1
            case _:
                following = None
        return None if following == page else following

    def within(self, page: str | int | None, answer: Page, end: int) -> int:
        """Return the next page in a split that ends before ``end``, where a short page is not the last one."""
        if not answer.count:
            return end
        return self.number(page) + (answer.count if self.mode == "offset" else 1)

    def number(self, page: str | int | None) -> int:
        """Return the offset or number of a page, by default of the first one."""
        if isinstance(page, int):
            return page
        return (1 if self.mode == "page" else 0) if self._start is None else self._start

    @property
    def counts(self) -> bool:
        """Whether pages are given by numbers, or by an offset."""
        return self.mode in ("offset", "page")

    def page(self, response: Response, content: Any, count: int, place: Place) -> Page:
        """Return an answer with ``count`` items as paging sees it."""
        before = self._full_before(place.page) if place.received is None else place.received
        is_estimate = self.mode == "page" and self._begins_later
        return Page(response.url, response.headers, content, count, before, is_estimate)

    def received(self, page: str | int, answer: Page) -> int | None:
        """Return how many items come before a page, the one after ``answer``; ``None`` if all pages were full."""
        so_far = answer.before + answer.count
        return None if so_far == self._full_before(page) else so_far

    def _full_before(self, page: str | int | None) -> int:
        steps = self.number(page) - self.number(None) if self.counts else 0
        return steps if self.mode == "offset" else steps * self.size

    @property
    def tells_total(self) -> bool:
        """Whether an answer reports the total number of records."""
        return self._total is not None or bool(self._total_header)

    def total(self, answer: Page) -> int | None:
        """Return the total number of records that an answer reports; ``None`` if it does not."""
        found: Any = None
        if self._total is not None:
            found = self._total.first(answer.content)
        if found is None and self._total_header:
            found = answer.headers.get(self._total_header)
        if found is None:
            return None
        text = found.strip() if isinstance(found, str) else found
        if isinstance(text, bool) or not (isinstance(text, int) or (isinstance(text, str) and _TOTAL.fullmatch(text))):
            raise ConnectError(
                f"The total number of records is {excerpt(found)}, not an integer: correct http.paging.total.pointer "
                "or http.paging.total.header."
            )
        return int(text)

    def end(self, page: str | int | None, answer: Page) -> tuple[str | int | None, int]:
        """Return where to ask again at the end of the list: the page, and how many of its items are done."""
        if self.mode == "offset":
            return self.number(page) + answer.count, 0
        return page, answer.count

    def is_last(self, answer: Page) -> bool:
        """Return whether an answer looks like the last page, so that the server may not know a page after it."""
        total = self.total(answer)
        return answer.count < self.size or (total is not None and answer.before + answer.count >= total)

    def _goes_on(self, answer: Page) -> bool:
        """Return whether a page is to follow. One that is not full need not be the last: many servers cap their
        size.
        """
        if not answer.count:
            return False
        if self._more is not None or answer.count >= self.size:
            return True
        total = self.total(answer)
        if total is not None and (self._stays or not answer.is_estimate):
            return answer.before + answer.count < total
        # Where reading continues at the last page later, the end must not be looked for beyond it.
        return not self._stays

    def _found(self, answer: Page) -> str | int | None:
        found = self._next.first(answer.content) if self._next is not None else None
        if found is None or found == "" or found is False:
            return None
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            raise ConnectError(
                f"The next page is {excerpt(found)}: http.paging.next.pointer must point to a string or a number."
            )
        if isinstance(found, str) and len(found) > _MOST_CHARACTERS:
            raise ConnectError(f"The link or cursor of the next page has more than {_MOST_CHARACTERS} characters.")
        return found

    def _checked(self, url: str, link: str | int) -> str:
        """Return the absolute URL of a link, without the credential. Raises an error if it leads to another host."""
        target = urljoin(url, str(link))
        try:
            place = origin(target)
        except ValueError:
            raise ConnectError(
                "The link of the next page is not an HTTP URL: correct http.paging.next.pointer."
            ) from None
        parts = urlsplit(target)
        if place == (("http", *self._own[1:2], 80)) and self._own == ("https", self._own[1], 443):
            # A server behind a TLS-terminating proxy does not know that it is reached over https.
            parts = parts._replace(scheme="https", netloc=parts.hostname or "")
        elif place != self._own or parts.username is not None:
            raise ConnectError(
                f"The next page is at {shown_address(target)}, on another host than http.request.url, where "
                "credentials are not sent. Set http.request.url to that host."
            )
        query = parts.query
        if self._credential is not None:
            kept = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True)]
            query = urlencode([(name, value) for name, value in kept if name != self._credential])
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def _is_yes(found: Any) -> bool:
    return found.strip().lower() not in _NO if isinstance(found, str) else bool(found)


def next_link(header: str) -> str | None:
    """Return the target of the link with ``rel=next`` in a ``Link`` header (RFC 8288)."""
    for target, parameters in _links(header[:_MOST_CHARACTERS]):
        if "next" in parameters.get("rel", "").lower().split():
            return target
    return None


def _links(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    at = 0
    while match := _TARGET.match(header, at):
        at = match.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(header, at):
            parameters.setdefault(parameter[1].lower(), parameter[2] or parameter[3] or "")
            at = parameter.end()
        yield match[1], parameters
