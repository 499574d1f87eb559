"""Positions in the documents of an index, as source offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from connect.data import Offset
from connect.errors import ConnectError

__all__ = ["Key", "Position", "partition_of"]

Key: TypeAlias = tuple[Any, ...]
"""The values of the cursor fields of a document, as the cluster sorts by them."""

_FORM: Final = (
    'An offset has the texts "cursor", a JSON list with a value for each field of cursor.field, "id" and "index", '
    'those of the last document; and "after", the cursor of the documents before those with the same one, if any.'
)


def partition_of(index: str) -> dict[str, str]:
    """Return the source partition of an index, data stream or alias."""
    return {"index": index}


@dataclass(frozen=True, slots=True)
class Position:
    """The last document that was published, in the order of cursor, id and index.

    ``after`` is the cursor after which the documents with the same cursor as the last one begin: they are read again,
    and those that were published are left out. An empty position is before the first document.
    """

    cursor: Key | None = None
    id: str = ""
    index: str = ""
    after: Key | None = None

    @classmethod
    def from_offset(cls, offset: Offset | None) -> Position:
        """Return the position that an offset describes. Raises :class:`~connect.errors.ConnectError` for others."""
        if offset is None:
            return cls()
        if "position" in offset:
            # That of com.github.dariobalinzo.ElasticSourceConnector: the texts of the fields of the last document.
            given = (offset["position"], offset.get("position_secondary"))
            return cls(after=tuple(str(each) for each in given if each is not None))
        cursor, after = _key(offset.get("cursor")), _key(offset.get("after"))
        identity, index = offset.get("id"), offset.get("index")
        if cursor is None or not isinstance(identity, str) or not isinstance(index, str):
            raise ConnectError(f"The offset {dict(offset)} is not one of a search source. {_FORM}")
        return cls(cursor, identity, index, after)

    @property
    def offset(self) -> dict[str, str]:
        """The offset of the last document."""
        made = {"cursor": _text(self.cursor or ()), "id": self.id, "index": self.index}
        return made if self.after is None else {**made, "after": _text(self.after)}

    def passed(self, cursor: Key, identity: str, index: str) -> bool:
        """Return whether a document is the last one or before it."""
        if self.cursor is None or cursor > self.cursor:
            return False
        return cursor < self.cursor or (identity, index) <= (self.id, self.index)


def _key(text: object) -> Key | None:
    if text is None:
        return None
    try:
        found = orjson.loads(str(text))
    except ValueError:
        found = None
    if not isinstance(found, list) or not found:
        raise ConnectError(f"{text!r} is not a cursor. {_FORM}")
    return tuple(found)


def _text(key: Key) -> str:
    return orjson.dumps(key).decode()
