"""Parsing of server-sent events."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from connect.errors import DataError

__all__ = ["Event", "EventParser"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its name, its data, and the id to resume the stream after."""

    name: str
    data: str
    id: str


@dataclass(slots=True)
class EventParser:
    """Takes the bytes of a stream in pieces of any size, and returns the complete events.

    An event of more than ``most`` bytes is an error, so that memory is bounded (I9).
    """

    most: int
    last_id: str = ""
    retry_seconds: float | None = None
    _decode: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")(errors="replace")
    )
    _line: list[str] = field(default_factory=list)
    _data: list[str] = field(default_factory=list)
    _name: str = ""
    _id: str = ""
    _size: int = 0
    _after_return: bool = False
    _is_first: bool = True

    def __post_init__(self) -> None:
        self._id = self.last_id

    def feed(self, part: bytes) -> list[Event]:
        """Return the events completed by these bytes."""
        text = self._decode.decode(part)
        if self._is_first and text:
            self._is_first = False
            text = text.removeprefix("\ufeff")
        if self._after_return and text:
            text = text.removeprefix("\n")
            self._after_return = False
        self._after_return = text.endswith("\r")
        events = []
        # Not splitlines, which knows more line ends than the format has.
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for index, piece in enumerate(lines):
            self._grow(len(piece))
            self._line.append(piece)
            if index < len(lines) - 1:
                line = "".join(self._line)
                self._line.clear()
                if (event := self._take(line)) is not None:
                    events.append(event)
        return events

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > self.most:
            raise DataError(
                f"An event has more than {self.most} bytes: raise http.event.max.bytes, or request smaller events."
            )

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdecimal() and len(value) < 10:
                self.retry_seconds = int(value) / 1000
            case "":
                # A comment, which only keeps the connection alive.
                self._size = sum(map(len, self._data))
        return None

    def _dispatch(self) -> Event | None:
        self._size = 0
        data, name = self._data, self._name
        self._data, self._name = [], ""
        self.last_id = self._id
        if not data:
            return None
        return Event(name or "message", "\n".join(data), self._id)
