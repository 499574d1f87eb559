"""What converters and headers have to do with each other: converters may read them, and what describes the data of a
record, such as the id of its schema, moves between the data and a header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connect.converter import Converter
from connect.data import Constant, Schema
from connect.internals.chain.raw_records import RawHeaders

__all__ = ["framed", "framed_column", "unframed", "unframed_column", "written"]


def written(
    converter: Converter[Any], topic: str, headers: RawHeaders | None, schema: Schema | None, value: Any
) -> bytes | None:
    """Return the bytes that a converter makes of a value, with a view to its record's headers if it reads them."""
    if converter.reads_headers:
        return converter.from_connect_with_headers(topic, headers or (), schema, value)
    return converter.from_connect(topic, schema, value)


def framed(converter: Converter[Any], data: bytes | None, headers: RawHeaders | None) -> bytes | None:
    """Return consumed data with what a header says of it before it."""
    return _joined(converter.reads_frame_from, data, headers) if headers else data


def framed_column(
    marks: Mapping[str, bytes], data: Sequence[bytes | None], headers: Sequence[RawHeaders | None]
) -> Sequence[bytes | None]:
    """Return a column of consumed data, each with what a header says of it before it, after the mark of the header."""
    if not marks or (isinstance(headers, Constant) and not headers.value):
        return data
    if isinstance(data, Constant) and data.value is None:
        return data
    return [_joined(marks, item, row) if row else item for item, row in zip(data, headers, strict=True)]


def _joined(marks: Mapping[str, bytes], data: bytes | None, headers: RawHeaders) -> bytes | None:
    if data is None:
        return data
    for name, mark in marks.items():
        # As in Java, the last one of a name counts.
        frame = next((value for key, value in reversed(headers) if key == name), None)
        if frame is not None:
            return mark + frame + data
    return data


def unframed(
    converter: Converter[Any], data: bytes | None, headers: RawHeaders | None
) -> tuple[bytes | None, RawHeaders | None]:
    """Return data that a converter has written, and the headers, with what describes the data moved there."""
    name = converter.writes_frame_to
    if name is None or data is None:
        return data, headers
    start, end = len(converter.reads_frame_from.get(name, b"")), converter.frame_size(data)
    others = [header for header in headers or () if header[0] != name]
    return data[end:], [*others, (name, data[start:end])]


def unframed_column(
    converter: Converter[Any], data: Sequence[bytes | None], headers: Sequence[RawHeaders | None]
) -> tuple[Sequence[bytes | None], Sequence[RawHeaders | None]]:
    """Return a column of such data, and its headers; see :func:`unframed`."""
    if converter.writes_frame_to is None or not len(data):
        return data, headers
    pairs = [unframed(converter, item, row) for item, row in zip(data, headers, strict=True)]
    return [item for item, _ in pairs], [row for _, row in pairs]
