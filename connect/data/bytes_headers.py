"""Headers of many records as bytes, which are made headers only if somebody looks at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from connect.data.record import NO_HEADERS, Header, Headers
from connect.data.schema import Schema

__all__ = ["BytesHeaders"]

_BYTES: Final = Schema.bytes()
_Raw: TypeAlias = Sequence[tuple[str, bytes | None]]


class BytesHeaders(Sequence[Headers]):
    """The headers of records whose values are bytes; ``raw`` has them by record, ``None`` where there are none.

    A converter that leaves bytes as they are gets them on a topic again at no cost.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: Sequence[_Raw | None]) -> None:
        self.raw = raw

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return BytesHeaders(self.raw[index])
        found = self.raw[index]
        return Headers(Header(key, value, _BYTES) for key, value in found) if found else NO_HEADERS
