"""Envelopes, ``{"schema":...,"payload":...}``, and the bytes that identify the envelopes of one schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, repeat
from operator import indexOf, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.errors import DataError
from converters.json.nesting import check_depth
from converters.json.text import WHITE_SPACE, Parse, exactly

if TYPE_CHECKING:
    from converters.json.reader import Reader

__all__ = ["NOT_AN_ENVELOPE", "Envelope", "Frame", "read_envelope"]

NOT_AN_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)
_BRACE: Final = ord("}")
_CLOSED: Final = frozenset({_BRACE})
_MEMBERS: Final = frozenset({"schema", "payload"})
_BLANK: Final = re.compile(r"\ufeff?[ \t\r\n]*(?=[^ \t\r\n])")
_START: Final = re.compile(r"\ufeff?[ \t\r\n]*\{[ \t\r\n]*")
_COLON: Final = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_COMMA: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_END: Final = re.compile(r"[ \t\r\n]*\}")


class Frame:
    """The bytes before and after the payload in envelopes of one schema, and the reader of that payload.

    One of the two parts contains the schema. Any message with a single JSON value between them is an envelope of this
    schema.
    """

    __slots__ = ("closing", "end", "opening", "reader", "start")

    def __init__(self, opening: bytes, closing: bytes, reader: Reader) -> None:
        self.opening = opening
        self.closing = closing
        self.reader = reader
        self.start = len(opening)
        """The index in a message at which the payload begins."""
        self.end = -len(closing)
        """The index at which the payload ends, counted from the end of the message."""

    def payload(self, message: bytes) -> bytes | None:
        """Return the payload of a message, or ``None`` if the message does not have this frame."""
        if not message.startswith(self.opening):
            return None
        if not message.endswith(self.closing):
            message = message.rstrip(WHITE_SPACE)
            if not message.endswith(self.closing):
                return None
        return message[self.start : self.end]

    def payloads(self, messages: Sequence[bytes], start: int, stop: int) -> list[bytes]:
        """Return the payloads of the messages from ``start`` up to ``stop`` or the first one without this frame."""
        if self.payload(messages[start]) is None:
            return []
        run: Sequence[bytes] = messages[start : _first_without(bytes.startswith, messages, start, stop, self.opening)]
        if not set(map(itemgetter(-1), run)) <= _CLOSED:
            run = [message.rstrip(WHITE_SPACE) for message in run]
        run = run[: _first_without(bytes.endswith, run, 0, len(run), self.closing)]
        before, after = self.start, self.end
        return [message[before:after] for message in run]


def _first_without(has: Any, messages: Sequence[bytes], start: int, stop: int, part: bytes) -> int:
    """Return the index, from ``start`` up to ``stop``, of the first message that does not satisfy ``has``."""
    try:
        return start + indexOf(map(has, islice(messages, start, stop), repeat(part)), False)
    except ValueError:
        return stop


class Envelope(NamedTuple):
    """An exactly parsed envelope: its members, and the bytes around the payload if they identify similar envelopes."""

    schema: Any
    payload: Any
    opening: bytes | None
    closing: bytes


def read_envelope(data: bytes) -> Envelope:
    """Parse the envelope in ``data``. Raises :class:`~connect.errors.DataError` if there is none.

    The last of several members with the same name wins; text after the envelope is ignored.
    """
    return exactly(data, _read)


def _read(text: str, parse: Parse) -> Envelope:
    values: dict[str, Any] = {}
    payloads = before = after = 0
    at = _first_name(text, parse)
    while True:
        name, at = _name(text, at, parse)
        start = _past(_COLON, text, at)
        values[name], at = parse(text, start)
        if name == "payload":
            payloads, before, after = payloads + 1, start, at
        if (end := _END.match(text, at)) is not None:
            break
        at = _past(_COMMA, text, at)
    if values.keys() != _MEMBERS:
        raise DataError(NOT_AN_ENVELOPE)
    check_depth(text[before:after].encode())
    closing = text[after : end.end()].lstrip()
    known = payloads == 1 or closing == "}"
    return Envelope(values["schema"], values["payload"], text[:before].encode() if known else None, closing.encode())


def _first_name(text: str, parse: Parse) -> int:
    """Return the index at which the name of the first member begins."""
    if (start := _START.match(text)) is not None:
        return start.end()
    if blank := _BLANK.match(text):
        # This is not an object. If it is not JSON either, the parser reports that.
        parse(text, blank.end())
    raise DataError(NOT_AN_ENVELOPE)


def _name(text: str, at: int, parse: Parse) -> tuple[str, int]:
    if text[at : at + 1] == "}":
        raise DataError(NOT_AN_ENVELOPE)
    name, end = parse(text, at)
    if name.__class__ is not str:
        raise ValueError(f"the name of a member is expected at character {at}")
    if name not in _MEMBERS:
        raise DataError(NOT_AN_ENVELOPE)
    return name, end


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    if (match := pattern.match(text, at)) is None:
        raise ValueError(f"unexpected {text[at : at + 1]!r} at character {at}")
    return match.end()
