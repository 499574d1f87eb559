"""Caches of readers and writers by schema, and of the frames by which envelopes are recognised."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from connect.data import Schema
from converters.json.config import JsonConverterConfig
from converters.json.decode import decoder
from converters.json.envelope import Envelope, Frame
from converters.json.reader import Reader
from converters.json.schema import envelope_schema
from converters.json.text import WHITE_SPACE
from converters.json.writer import Writer

__all__ = ["Codecs"]

_PAYLOAD: Final = re.compile(rb'"payload"[ \t\r\n]*:[ \t\r\n]*')
_MOST_TRIES: Final = 4


class Codecs:
    """The readers and writers of recent schemas, at most ``schemas.cache.size`` of each."""

    def __init__(self, config: JsonConverterConfig) -> None:
        self._config = config
        self._size = max(config.schemas_cache_size, 1)
        self._frames: OrderedDict[bytes, Frame] = OrderedDict()
        self.reader: Callable[[Schema | None], Reader] = lru_cache(self._size)(self._new_reader)
        self.writer: Callable[[Schema | None], Writer] = lru_cache(self._size)(self._new_writer)

    def schema(self, node: Any) -> Schema | None:
        """Return the schema described by parsed JSON; raise :class:`~connect.errors.DataError` if it describes none."""
        return envelope_schema(node, self._read_default)

    def frame_of(self, message: bytes, last: Frame) -> tuple[Frame, bytes] | None:
        """Return the frame of a message and its payload, or ``None`` if the frame is unknown.

        The last frame used is tried first.
        """
        if (payload := last.payload(message)) is not None:
            return last, payload
        for key in _likely_keys(message):
            frame = self._frames.get(key)
            if frame is not None and (payload := frame.payload(message)) is not None:
                self._frames.move_to_end(key)
                return frame, payload
        return None

    def learned(self, envelope: Envelope) -> tuple[Reader, Frame | None]:
        """Return the reader for an envelope, and the frame by which similar envelopes will be recognised."""
        if envelope.opening is None:
            return self.reader(self.schema(envelope.schema)), None
        key = envelope.opening if envelope.closing == b"}" else envelope.closing
        known = self._frames.get(key)
        reader = self.reader(self.schema(envelope.schema)) if known is None else known.reader
        frame = self._frames[key] = Frame(envelope.opening, envelope.closing, reader)
        self._frames.move_to_end(key)
        if len(self._frames) > self._size:
            self._frames.popitem(last=False)
        return reader, frame

    def _new_reader(self, schema: Schema | None) -> Reader:
        return Reader(schema, self._config.replace_null_with_default)

    def _new_writer(self, schema: Schema | None) -> Writer:
        return Writer(schema, self._config)

    def _read_default(self, schema: Schema, node: Any) -> Any:
        return decoder(schema, replace_null=self._config.replace_null_with_default)(node)


def _likely_keys(message: bytes) -> Iterator[bytes]:
    """Yield candidate keys of a message's frame: the bytes up to the payload, or those after it.

    The words "schema" and "payload" may also occur inside the schema and the payload, so a few positions are tried. A
    message with more occurrences is parsed completely.
    """
    for match in islice(_PAYLOAD.finditer(message), _MOST_TRIES):
        yield message[: match.end()]
    message = message.rstrip(WHITE_SPACE)
    start = len(message)
    for _ in range(_MOST_TRIES):
        start = message.rfind(b'"schema"', 0, start)
        before = message[: max(start, 0)].rstrip(WHITE_SPACE)
        if not before:
            return
        yield message[len(before) - 1 :]
