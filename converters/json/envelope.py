"""Envelopes, ``{"schema":...,"payload":...}``, and the bytes by which those of one schema are recognised."""

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
    """The bytes before and after the payload in the envelopes of one schema, and the reader of the payload.

    The schema is in one of the two parts. Any single JSON value may stand between them: the message is then an envelope
    of this schema.
    """

    __slots__ = ("closing", "end", "opening", "reader", "start")

    def __init__(self, opening: bytes, closing: bytes, reader: Reader) -> None:
        self.opening = opening
        self.closing = closing
        self.reader = reader
        self.start = len(opening)
        """The index in a message at which the payload begins."""
        self.end = -len(closing)
        """The index at which it ends, counted from the end of the message."""

    def payload(self, message: bytes) -> bytes | None:
        """The payload of a message; ``None`` if the message does not have this frame."""
        if not message.startswith(self.opening):
            return None
        if not message.endswith(self.closing):
            message = message.rstrip(WHITE_SPACE)
            if not message.endswith(self.closing):
                return None
        return message[self.start : self.end]

    def payloads(self, messages: Sequence[bytes], start: int, stop: int) -> list[bytes]:
        """The payloads of the messages from ``start``, up to ``stop`` or the first one without this frame."""
        if self.payload(messages[start]) is None:
            return []
        run: Sequence[bytes] = messages[start : _first_without(bytes.startswith, messages, start, stop, self.opening)]
        if not set(map(itemgetter(-1), run)) <= _CLOSED:
            run = [message.rstrip(WHITE_SPACE) for message in run]
        run = run[: _first_without(bytes.endswith, run, 0, len(run), self.closing)]
        before, after = self.start, self.end
        return [message[before:after] for message in run]


def _first_without(has: Any, messages: Sequence[bytes], start: int, stop: int, part: bytes) -> int:
    """The index, from ``start`` up to ``stop``, of the first message for which ``has`` denies the part."""
    try:
        return start + indexOf(map(has, islice(messages, start, stop), repeat(part)), False)
    except ValueError:
        return stop


class Envelope(NamedTuple):
    """An envelope read exactly: its members, and the bytes around the payload if others can be recognised by them."""

    schema: Any
    payload: Any
    opening: bytes | None
    closing: bytes


def read_envelope(data: bytes) -> Envelope:
    """The envelope in ``data``; a :class:`~connect.errors.DataError` if it holds none.

    Of members with the same name the last counts; what follows the envelope is ignored.
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
    """The index at which the name of the first member begins."""
    if (start := _START.match(text)) is not None:
        return start.end()
    if blank := _BLANK.match(text):
        # It is not an object; if it is not JSON either, the parser's error says so.
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
