"""Documents as records: the id is the key, the document the value, and a header tells its index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, overload

from connect.data import Constant, Header, Headers, Offset, Schema, SourceBatch, SourceRecord, ValueColumn
from connect.errors import ConnectError, DataError
from connectors.elasticsearch.document_schemas import DocumentSchemas
from connectors.elasticsearch.positions import partition_of
from connectors.elasticsearch.reading import Hit
from connectors.elasticsearch.source_config import SearchSourceConfig, ValueSchema

__all__ = ["INDEX_HEADER", "MalformedError", "RecordMaker"]

INDEX_HEADER: Final = "index"
_KEY: Final = Schema.string()
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_MOST_INDEXES: Final = 10_000


class MalformedError(DataError):
    """A document that has no schema, and the record that it would have been, with its JSON as the value."""

    def __init__(self, record: SourceRecord, reason: str) -> None:
        super().__init__(reason)
        self.record = record


class RecordMaker:
    """Makes the records of one index, data stream or alias."""

    def __init__(self, config: SearchSourceConfig, index: str) -> None:
        self._topic = config.topic or f"{config.topic_prefix}{index}"
        if not _TOPIC.fullmatch(self._topic):
            raise ConnectError(
                f"The documents of {index} would go to the topic {self._topic!r}, but names of topics have at most 249 "
                "letters, digits, '.', '_' and '-': name another one with topic."
            )
        self._partition = partition_of(index)
        self._schemas = DocumentSchemas() if config.value_schema is ValueSchema.DOCUMENT else None
        self._headers: dict[str, Headers] = {}

    def records(self, hits: Sequence[Hit]) -> SourceBatch | list[SourceRecord | MalformedError]:
        """Return the records of documents."""
        if self._schemas is not None:
            return [self._record(hit, self._schemas) for hit in hits]
        first = hits[0].index
        is_one = all(hit.index == first for hit in hits)
        headers: Sequence[Headers] = (
            Constant(self._header(first), len(hits)) if is_one else [self._header(hit.index) for hit in hits]
        )
        return SourceBatch.of(
            self._topic,
            ValueColumn([hit.source for hit in hits]),
            key=ValueColumn([hit.id for hit in hits], _KEY),
            source_partition=self._partition,
            source_offsets=_Offsets(hits),
            headers=headers,
        )

    def _record(self, hit: Hit, schemas: DocumentSchemas) -> SourceRecord | MalformedError:
        record = SourceRecord(
            self._topic,
            hit.source,
            key=hit.id,
            key_schema=_KEY,
            headers=self._header(hit.index),
            source_partition=self._partition,
            source_offset=hit.position.offset,
        )
        try:
            schema, value = schemas.fitted(hit.source)
        except DataError as error:
            return MalformedError(record, f"The document {hit.id} of {hit.index} has no schema: {error}")
        return record.replace(value=value, value_schema=schema)

    def _header(self, index: str) -> Headers:
        found = self._headers.get(index)
        if found is None:
            if len(self._headers) >= _MOST_INDEXES:
                self._headers.clear()
            found = self._headers[index] = Headers([Header(INDEX_HEADER, index, _KEY)])
        return found


class _Offsets(Sequence[Offset]):
    """The offsets of documents, made when they are asked for: of most only the last is."""

    __slots__ = ("_hits",)

    def __init__(self, hits: Sequence[Hit]) -> None:
        self._hits = hits

    def __len__(self) -> int:
        return len(self._hits)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Offset]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return _Offsets(self._hits[index])
        return self._hits[index].position.offset
