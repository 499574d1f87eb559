"""DropHeaders: drops headers by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from connect.config import HIGH, Config, option
from connect.data import Batch, Headers, Record
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import copy_of
from connect.transforms.fields.options import unique_names

__all__ = ["DropHeaders", "DropHeadersConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


class DropHeadersConfig(Config):
    """The headers to drop."""

    headers: tuple[str, ...] = option(
        importance=HIGH,
        validator=unique_names,
        doc="The keys of the headers to drop; every header with one of them goes.",
    )


class DropHeaders(Transformation[DropHeadersConfig]):
    """Drops all headers with the given keys."""

    def __init__(self, config: DropHeadersConfig) -> None:
        super().__init__(config)
        self._dropped = frozenset(config.headers)

    def apply(self, record: R) -> R | None:
        """Return the record without the headers."""
        kept = self._kept(record.headers)
        if kept is record.headers:
            return record
        new = copy_of(record)
        new.headers = kept
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch without the headers."""
        return [batch.replace(headers=[self._kept(headers) for headers in batch.headers])]

    def _kept(self, headers: Headers) -> Headers:
        dropped = self._dropped
        if not any(header.key in dropped for header in headers):
            return headers
        return Headers(header for header in headers if header.key not in dropped)
