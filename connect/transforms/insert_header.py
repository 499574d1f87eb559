"""InsertHeader: adds a static header."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeVar

from connect.config import HIGH, Config, option, validator
from connect.data import NO_HEADERS, Batch, Constant, Header, Headers, Record
from connect.data.values import parse_literal
from connect.transformation import Transformation
from connect.transforms.fields.key_or_value import copy_of

__all__ = ["InsertHeader", "InsertHeaderConfig"]

R = TypeVar("R", bound=Record)
B = TypeVar("B", bound=Batch[Any])


@validator("non-null string", refuse_null="entry must be non null")
def _present(key: str, value: str) -> None:
    """Accept every string."""


class InsertHeaderConfig(Config):
    """The header to insert."""

    header: str = option(importance=HIGH, validator=_present, doc="The key of the header.")
    value_literal: str = option(
        importance=HIGH,
        validator=_present,
        doc="The value of the header, read as a boolean, number, date, list or map where it looks like one.",
    )


class InsertHeader(Transformation[InsertHeaderConfig]):
    """Adds one static header to every record, after those it has."""

    def __init__(self, config: InsertHeaderConfig) -> None:
        super().__init__(config)
        literal = parse_literal(config.value_literal)
        self._header = Header(config.header, literal.value, literal.schema)
        self._alone = Headers((self._header,))
        self._is_shared = not isinstance(literal.value, (list, dict))

    def apply(self, record: R) -> R | None:
        """Return the record with the header."""
        new = copy_of(record)
        new.headers = self._with_header(record.headers)
        return new

    def apply_batch(self, batch: B) -> Sequence[B]:
        """Return the batch with the header."""
        headers = batch.headers
        if isinstance(headers, Constant) and self._is_shared:
            return [batch.replace(headers=Constant(self._with_header(headers.value), len(batch)))]
        return [batch.replace(headers=[self._with_header(present) for present in headers])]

    def _with_header(self, headers: Headers) -> Headers:
        if not self._is_shared:
            # Each record gets its own list or map, which others may modify.
            return Headers((*headers, replace(self._header, value=deepcopy(self._header.value))))
        return self._alone if headers is NO_HEADERS else Headers((*headers, self._header))
