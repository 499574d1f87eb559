"""The decompression of HTTP bodies, which notices a body that ends before its compressed data do."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

__all__ = ["ACCEPTED_ENCODINGS", "BodyDecoder", "BrokenBodyError", "UnknownEncodingError"]

ACCEPTED_ENCODINGS: Final = "gzip, deflate"
"""The encodings to ask servers for, as the value of Accept-Encoding."""

_GZIP: Final = frozenset({"gzip", "x-gzip"})
_DEFLATE: Final = frozenset({"deflate", "x-deflate"})
_NONE: Final = frozenset({"", "identity", "none"})
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS
_MAGIC: Final = b"\x1f\x8b"
_PART_BYTES: Final = 1 << 18
"""The most bytes decompressed at once, so that a small body cannot fill the memory before its size is checked."""
_MOST_LAYERS: Final = 3


class BrokenBodyError(Exception):
    """A compressed body is damaged, or ends before its data do."""


class UnknownEncodingError(Exception):
    """A body has an encoding that was not asked for."""


class BodyDecoder:
    """Decodes a body, part by part, according to its ``Content-Encoding``."""

    def __init__(self, encoding: str | None) -> None:
        names = [name.strip().lower() for name in (encoding or "").split(",")]
        # The encoding that was applied last comes off first.
        self._layers = [_layer(name) for name in reversed(names) if name not in _NONE]
        if len(self._layers) > _MOST_LAYERS:
            raise UnknownEncodingError(f"its body is compressed {len(self._layers)} times")

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what a part of the body holds. Raises :class:`BrokenBodyError` if it is damaged."""
        parts: Iterable[bytes] = (data,)
        for layer in self._layers:
            parts = layer.decode(parts)
        yield from parts

    def check_end(self) -> None:
        """Raise :class:`BrokenBodyError` if the body cannot end here."""
        for layer in self._layers:
            layer.check_end()


class _Layer:
    """One encoding. Gzip may have several members; what follows the last one is ignored, as by every client."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_gzip = name in _GZIP
        self._stream: Any = None
        self._held = b""
        self._doubted: bytes | None = None
        self._ended = 0

    def decode(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            yield from self._decode(part)

    def check_end(self) -> None:
        is_cut = self._stream is not None or (self._held and (not self._ended or _MAGIC.startswith(self._held)))
        if is_cut:
            raise BrokenBodyError(f"its {self._name} data are cut off")

    def _decode(self, part: bytes) -> Iterator[bytes]:
        data = self._held + part
        self._held = b""
        while self._begun(data):
            found, data = self._decompress(data)
            if found:
                yield found
            if self._stream.eof:
                data, self._stream, self._ended = self._stream.unused_data, None, self._ended + 1
            elif not data and len(found) < _PART_BYTES:
                return

    def _begun(self, data: bytes) -> bool:
        """Return whether there is a stream to decompress, after beginning one if its first two bytes are there."""
        if self._stream is not None:
            return True
        if self._ended and not (self._is_gzip and data[:2] == _MAGIC[: len(data)]):
            # Neither is what follows the next part looked at.
            self._is_gzip = False
            return False
        if len(data) < len(_MAGIC):
            self._held = data
            return False
        self._stream = zlib.decompressobj(_GZIP_BITS if self._is_gzip else _bits(data))
        if not self._is_gzip:
            self._doubted = b""
        return True

    def _decompress(self, data: bytes) -> tuple[bytes, bytes]:
        try:
            found: bytes = self._stream.decompress(data, _PART_BYTES)
        except zlib.error as error:
            if self._doubted is None:
                raise BrokenBodyError(f"its {self._name} data are damaged") from error
            # Servers call both the bare stream and the one with a header "deflate", and a bare one may look like both.
            data, self._doubted = self._doubted + data, None
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._decompress(data)
        if self._doubted is not None:
            self._doubted = None if found else self._doubted + data
        return found, self._stream.unconsumed_tail


def _layer(name: str) -> _Layer:
    if name in _GZIP or name in _DEFLATE:
        return _Layer(name)
    raise UnknownEncodingError(
        f"its body is in the Content-Encoding {name[:40]!r}, though {ACCEPTED_ENCODINGS} were asked for"
    )


def _bits(data: bytes) -> int:
    has_header = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS
