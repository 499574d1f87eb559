"""Headers of a record: an ordered multimap that never changes, so that records may share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from connect.data.schema import Schema

__all__ = ["NO_HEADERS", "Header", "Headers"]


@dataclass(frozen=True, slots=True)
class Header:
    """One header: a key, and a value with its schema (``None``: schemaless)."""

    key: str
    value: Any
    schema: Schema | None = None


class Headers(Sequence[Header]):
    """The headers of a record in order; a key may come more than once. Every change makes new headers."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Iterable[Header] = ()) -> None:
        self._headers = tuple(headers)

    def add(self, key: str, value: object, schema: Schema | None = None) -> Headers:
        """These headers and one more at the end."""
        return Headers((*self._headers, Header(key, value, schema)))

    def remove(self, key: str) -> Headers:
        """These headers without those of that key."""
        return Headers(header for header in self._headers if header.key != key)

    def retain_latest(self, key: str | None = None) -> Headers:
        """Of the headers with that key (of each key, if none is given) only the last."""
        last = {header.key: index for index, header in enumerate(self._headers)}
        kept = (
            header
            for index, header in enumerate(self._headers)
            if last[header.key] == index or (key is not None and header.key != key)
        )
        return Headers(kept)

    def apply(self, change: Callable[[Header], Header | None]) -> Headers:
        """These headers, each replaced by what ``change`` makes of it; ``None`` leaves it out."""
        return Headers(new for header in self._headers if (new := change(header)) is not None)

    def all_with_key(self, key: str) -> tuple[Header, ...]:
        """The headers with that key, in order."""
        return tuple(header for header in self._headers if header.key == key)

    def last_with_key(self, key: str) -> Header | None:
        """The last header with that key, or ``None``."""
        return next((header for header in reversed(self._headers) if header.key == key), None)

    @overload
    def __getitem__(self, index: int) -> Header: ...
    @overload
    def __getitem__(self, index: slice) -> Headers: ...
    def __getitem__(self, index: int | slice) -> Header | Headers:
        return Headers(self._headers[index]) if isinstance(index, slice) else self._headers[index]

    def __len__(self) -> int:
        return len(self._headers)

    def __iter__(self) -> Iterator[Header]:
        return iter(self._headers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._headers == other._headers

    def __hash__(self) -> int:
        return hash(tuple(header.key for header in self._headers))

    def __repr__(self) -> str:
        return f"Headers({list(self._headers)!r})"


NO_HEADERS: Final = Headers()
