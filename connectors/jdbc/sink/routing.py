"""Which table each record goes to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from connect.data import SinkBatch
from connect.errors import ConnectError, DataError
from connect.kits.sql.column import TableId
from connect.kits.sql.dialect import Dialect
from connectors.jdbc.sink.config import JdbcSinkConfig

__all__ = ["Routing"]

_UNUSUAL: Final = re.compile(r"[^a-zA-Z0-9_]")
_TOPIC: Final = "${topic}"
_FIELD: Final = "${field}"
_KEPT: Final = 10_000


class Routing:
    """Determines the table of each record.

    A topic name may contain dots, which separate schema and table, as in Java. The string of a field is data from
    whoever wrote the record: it is a single name, never a schema.
    """

    def __init__(self, config: JdbcSinkConfig, dialect: Dialect) -> None:
        self._format = config.table_name_format
        self._field = config.table_name_field
        if self._field and _FIELD not in self._format:
            self._format = _FIELD if self._format == _TOPIC else f"{self._format}{_FIELD}"
        self._mapped: Mapping[str, str] = config.mapped_tables
        self._normalize = config.table_name_normalize
        self._dialect = dialect
        self._named = lru_cache(_KEPT)(self._name)

    def table_of(self, topic: str) -> TableId:
        """Return the table of a topic whose name no field has a part in."""
        return self._named(topic, "")

    def tables(self, batch: SinkBatch) -> Iterator[tuple[TableId, Sequence[int] | None]]:
        """Yield the tables of a batch, each with the indices of its records, or ``None`` for all.

        Raises :class:`~connect.errors.DataError` if the table of a record cannot be determined.
        """
        if not self._field or batch.topic in self._mapped:
            yield self.table_of(batch.topic), None
            return
        places: dict[str, list[int]] = {}
        for index, text in enumerate(self._texts(batch)):
            places.setdefault(text, []).append(index)
        for text, indices in places.items():
            yield self._named(batch.topic, text), indices

    def _texts(self, batch: SinkBatch) -> Iterator[str]:
        for value, key in zip(batch.value, batch.key, strict=True):
            yield self._text(key if value is None else value)

    def _text(self, struct: Any) -> str:
        if not isinstance(struct, Mapping):
            raise DataError(f"The record is not a struct, so it has no field {self._field} (table.name.field).")
        text = struct.get(self._field)
        if not isinstance(text, str) or not text:
            raise DataError(f"The field {self._field} (table.name.field) of the record is not a non-empty string.")
        return text

    def _name(self, topic: str, text: str) -> TableId:
        if (mapped := self._mapped.get(topic)) is not None:
            return self._parsed(mapped)
        if self._normalize:
            topic, text = _UNUSUAL.sub("_", topic), _UNUSUAL.sub("_", text)
        marked = self._parsed(self._format.replace(_TOPIC, topic).replace(_FIELD, _MARK))
        parts = [part.replace(_MARK, text) for part in (marked.name, marked.schema, marked.catalog)]
        return TableId(*parts)

    def _parsed(self, name: str) -> TableId:
        try:
            return self._dialect.table_id(name)
        except ValueError as error:
            raise ConnectError(
                f"{error}. Change table.name.format or topics.to.tables.mapping, or set table.name.normalize=true."
            ) from error


_MARK: Final = "\ue000field\ue000"
"""Replaces the string of a field while the rest of the name is parsed."""
