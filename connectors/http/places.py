"""Places in a list: what the next request is made of, as it is kept in source offsets."""

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
    """What a server has told to ask with whether an answer has changed, and the fingerprint of the URL it is for."""

    of: str
    tag: str | None
    modified: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """The place after a record: all that the next request needs, and what of its answer was read before.

    ``fields`` fill in the placeholders of all requests of one reading of the list; ``newest``, those of the newest
    record so far, the ones of the reading after it. ``page`` is the link, cursor, offset or number of the page,
    ``index`` how many of its items are done and ``last`` the fingerprint of the last of them; ``child`` is how many
    records of the child of the next item are.
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

    @property
    def is_start(self) -> bool:
        """Whether a reading of the list begins here."""
        return self.page is None and self.index == 0 and self.child == 0

    def restarted(self) -> Place:
        """The beginning of the next reading of the list."""
        return Place(self.newest, self.newest, self.newest_item, self.newest_item, validators=self.validators)

    def at(self, page: str | int | None) -> Place:
        """The beginning of a page."""
        return replace(self, page=page, index=0, last="", child=0)

    def to_offset(self) -> dict[str, Any]:
        """The source offset of a record that this is the place after."""
        offset: dict[str, Any] = dict(self.newest)
        if not self.is_start:
            offset |= {f"{_REQUEST}{name}": value for name, value in self.fields.items()}
            offset |= {"page.place": self.page, "page.index": self.index, "page.last": self.last}
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
        """The place that a source offset tells: one of this connector's, or of the Java connector's."""
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
        )


def check_offset(offset: Offset) -> None:
    """Raise :class:`~connect.errors.ConnectError` for an offset that is not one of this connector's."""
    for name in ("page.index", "page.child"):
        count = offset.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ConnectError(f"The value of {name!r} in the offset is {count!r}: give how many items are done.")
    for name, value in offset.items():
        if value is not None and not isinstance(value, _SCALARS):
            raise ConnectError(f"The value of {name!r} in the offset is {value!r}: give a text or a number.")
