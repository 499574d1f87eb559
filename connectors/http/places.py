"""Places in a list, from which the next request is built; kept in source offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from connect.data import Offset
from connect.errors import ConnectError

__all__ = ["Place", "Validators", "check_offset"]

_REQUEST: Final = "request."
_SCALARS: Final = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Validators:
    """The server's values for asking whether an answer has changed, and the fingerprint of the URL they are for."""

    of: str
    tag: str | None
    modified: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """The place after a record: everything the next request needs, and which part of its answer was already read.

    ``fields`` fill the placeholders of all requests of one reading of the list; ``newest``, the fields of the newest
    record so far, those of the next reading. ``page`` is the link, cursor, offset or number of the page, ``index`` the
    number of its items already done, and ``last`` the fingerprint of the last of them; ``child`` is the number of
    records of the next item's child already done.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    newest: Mapping[str, Any] = field(default_factory=dict)
    newest_item: str = ""
    seen_item: str = ""
    page: str | int | None = None
    index: int = 0
    last: str = ""
    child: int = 0
    is_done: bool = False
    validators: Validators | None = None
    received: int | None = None
    """How many items the pages before this one had, in this reading; ``None`` if each was full."""
    is_beyond: bool = False
    """Whether the page may well be beyond the end: the one before it was not full, or the last of the total."""

    @property
    def is_start(self) -> bool:
        """Whether a reading of the list begins here."""
        return self.page is None and self.index == 0 and self.child == 0

    def restarted(self) -> Place:
        """Return the beginning of the next reading of the list."""
        return Place(self.newest, self.newest, self.newest_item, self.newest_item, validators=self.validators)

    def at(self, page: str | int | None) -> Place:
        """Return the beginning of a page."""
        return replace(self, page=page, index=0, last="", child=0, received=None, is_beyond=False)

    def beyond(self, page: str | int, received: int | None, *, is_beyond: bool) -> Place:
        """Return the beginning of the page after this one; ``received`` are the items up to there, if known."""
        return replace(self.at(page), received=received, is_beyond=is_beyond)

    def to_offset(self) -> dict[str, Any]:
        """Return the source offset of the record before this place."""
        offset: dict[str, Any] = dict(self.newest)
        if not self.is_start:
            offset |= {f"{_REQUEST}{name}": value for name, value in self.fields.items()}
            offset |= {"page.place": self.page, "page.index": self.index, "page.last": self.last}
            if self.received is not None:
                offset["page.received"] = self.received
            if self.is_beyond:
                offset["page.beyond"] = True
            if self.child:
                offset["page.child"] = self.child
            if self.seen_item:
                offset["seen.item"] = self.seen_item
        if self.newest_item:
            offset["newest.item"] = self.newest_item
        if self.is_done:
            offset["page.done"] = True
        if self.validators is not None:
            offset["validators.of"] = self.validators.of
            offset["validators.tag"] = self.validators.tag
            offset["validators.modified"] = self.validators.modified
        return offset

    @classmethod
    def from_offset(cls, offset: Offset) -> Place:
        """Return the place of a source offset, either this connector's or the Java connector's."""
        newest = {name: value for name, value in offset.items() if "." not in name}
        newest_item = offset.get("newest.item", "")
        fields, seen = newest, newest_item
        if "page.index" in offset:
            fields = {name.removeprefix(_REQUEST): offset[name] for name in offset if name.startswith(_REQUEST)}
            seen = offset.get("seen.item", "")
        validators = None
        if "validators.of" in offset:
            validators = Validators(
                offset["validators.of"], offset.get("validators.tag"), offset.get("validators.modified")
            )
        return cls(
            fields,
            newest,
            newest_item,
            seen,
            offset.get("page.place"),
            offset.get("page.index", 0),
            offset.get("page.last", ""),
            offset.get("page.child", 0),
            offset.get("page.done", False),
            validators,
            offset.get("page.received"),
            offset.get("page.beyond", False),
        )


def check_offset(offset: Offset) -> None:
    """Raise :class:`~connect.errors.ConnectError` for an offset that is not one of this connector's."""
    for name in ("page.index", "page.child", "page.received"):
        count = offset.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ConnectError(
                f"The value of {name!r} in the offset is {count!r}: give the number of items already read."
            )
    for name, value in offset.items():
        if value is not None and not isinstance(value, _SCALARS):
            raise ConnectError(f"The value of {name!r} in the offset is {value!r}: give a string or a number.")
