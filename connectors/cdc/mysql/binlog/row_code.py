"""Functions that read rows, compiled for one table map.

A general reader looks up each column's type for each row. Here the types of a table become the source text of a
function once, in which columns of a fixed size are read together, and which is then run for all rows of an event.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from connect.kits.cdc.table_schemas import UNAVAILABLE
from connectors.cdc.mysql.binlog import numbers
from connectors.cdc.mysql.binlog.charsets import BINARY, text_decoder
from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.json_binary import apply_changes, json_text, packed_length
from connectors.cdc.mysql.binlog.table_map import ColumnMap, FieldType

__all__ = ["ColumnPlan", "Row", "RowReader", "compiled_reader", "short_float"]

Row: TypeAlias = tuple[Any, ...]
"""The values of a row in the order of its table's columns."""


_T: Final = FieldType
_INTEGERS: Final[Mapping[tuple[int, bool], str]] = {
    (_T.TINY, False): "b",
    (_T.TINY, True): "B",
    (_T.SHORT, False): "h",
    (_T.SHORT, True): "H",
    (_T.LONG, False): "i",
    (_T.LONG, True): "I",
    (_T.LONGLONG, False): "q",
    (_T.LONGLONG, True): "Q",
}
_INT24_BYTES: Final = 3
_DATETIME_BYTES: Final = 5
_TIME_BYTES: Final = 3
_TIMESTAMP_BYTES: Final = 4
_SHORT_LENGTH: Final = 255
_FLOAT: Final = struct.Struct("<f")


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How to read a column: what the log says, completed where it is silent."""

    column: ColumnMap
    is_unsigned: bool
    charset: str
    """The name of its character set; ``binary`` for bytes."""
    values: tuple[str, ...] = ()
    """The values of an enum or a set."""
    written: Callable[[bytes], str] | None = None
    """Writes bytes as the server would, for types that the log has as mere bytes, such as MariaDB's UUID."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The code that reads a column: of a fixed ``size`` by a format of ``struct``, or by statements."""

    size: int = 0
    format: str = ""
    convert: str = "{0}"
    """The expression of the value, of the bytes or the number that were read."""
    statements: tuple[str, ...] = ()


@dataclass(slots=True)
class _Source:
    """The source text of a function as it grows, and the objects that it names."""

    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)

    def add(self, depth: int, *lines: str) -> None:
        self.lines += ("    " * depth + line for line in lines)

    def name(self, thing: object) -> str:
        """Name an object in the function."""
        name = f"f{len(self.names)}"
        self.names[name] = thing
        return name


RowReader: TypeAlias = Callable[[bytes, int, int], list[Any]]
"""Reads all rows between two places: one tuple each, or a pair of tuples for updates."""


def compiled_reader(plans: Sequence[ColumnPlan], *images: bytes, is_partial: bool = False) -> RowReader:
    """Compile the function that reads the rows of an event.

    ``images`` are one or two bit maps of the columns that the log has: of the row, or of the row before and after an
    update. With ``is_partial``, JSON documents after an update may be given as changes of those before.
    """
    source = _Source(names={"UNAVAILABLE": UNAVAILABLE, "packed_length": packed_length, "apply_changes": apply_changes})
    source.add(0, "def read(data, pos, end):")
    source.add(1, "rows = []", "append = rows.append", "while pos < end:")
    for number, image in enumerate(images):
        present = [index for index in range(len(plans)) if image[index // 8] >> index % 8 & 1]
        prefix = "ba"[number] if len(images) > 1 else "v"
        partial = is_partial and prefix == "a"
        if partial:
            _add_partial_bits(source, plans)
        _add_image(source, plans, present, prefix, partial=partial)
    if len(images) > 1:
        source.add(2, f"append(({_tuple(plans, 'b')}, {_tuple(plans, 'a')}))")
    else:
        source.add(2, f"append({_tuple(plans, 'v')})")
    source.add(1, "if pos != end:", "    raise IndexError", "return rows")
    scope = dict(source.names)
    exec("\n".join(source.lines), scope)  # noqa: S102 - the text has names and numbers made here, nothing from the log
    read: RowReader = scope["read"]
    return read


def _tuple(plans: Sequence[ColumnPlan], prefix: str) -> str:
    return "(" + "".join(f"{prefix}{index}, " for index in range(len(plans))) + ")"


def _add_image(
    source: _Source, plans: Sequence[ColumnPlan], present: Sequence[int], prefix: str, *, partial: bool
) -> None:
    """Add the code of one row: straight if nothing in it is null, else column by column."""
    size = (len(present) + 7) // 8
    for index in sorted(set(range(len(plans))) - set(present)):
        source.add(2, f"{prefix}{index} = UNAVAILABLE")
    source.add(2, f"nulls = int.from_bytes(data[pos:pos + {size}], 'little')", f"pos += {size}")
    documents = [index for index, plan in enumerate(plans) if plan.column.type == _T.JSON]
    pieces = [
        (index, _partial_piece(source, index, documents.index(index)) if partial and index in documents else None)
        for index in present
    ]
    code = [(index, piece or _piece(source, plans[index], f"{prefix}{index}")) for index, piece in pieces]
    mask = (1 << len(present)) - 1
    source.add(2, f"if not nulls & {mask}:")
    source.add(3, *_straight(source, code, prefix), "pass")
    source.add(2, "else:")
    for place, (index, piece) in enumerate(code):
        source.add(3, f"if nulls & {1 << place}:", f"    {prefix}{index} = None", "else:")
        source.add(4, *_straight(source, [(index, piece)], prefix))
    if not code:
        source.add(3, "pass")


def _straight(source: _Source, code: Iterable[tuple[int, _Piece]], prefix: str) -> Iterator[str]:
    """The statements that read columns without nulls; runs of columns of fixed sizes are read at once."""
    run: list[tuple[int, _Piece]] = []
    for index, piece in code:
        if piece.size:
            run.append((index, piece))
            continue
        yield from _run(source, run, prefix)
        run = []
        yield from piece.statements
    yield from _run(source, run, prefix)


def _run(source: _Source, run: Sequence[tuple[int, _Piece]], prefix: str) -> Iterator[str]:
    if not run:
        return
    layout = struct.Struct("<" + "".join(piece.format for _, piece in run))
    unpack = source.name(layout.unpack_from)
    yield "".join(f"{prefix}{index}, " for index, _ in run) + f"= {unpack}(data, pos)"
    yield f"pos += {layout.size}"
    for index, piece in run:
        if piece.convert != "{0}":
            yield f"{prefix}{index} = {piece.convert.format(f'{prefix}{index}')}"


def _piece(source: _Source, plan: ColumnPlan, target: str) -> _Piece:  # noqa: PLR0911 - one for each kind
    column = plan.column
    kind, length = column.type, column.length
    if letter := _INTEGERS.get((kind, plan.is_unsigned)):
        return _Piece(struct.calcsize(letter), letter)
    if kind in (_T.FLOAT, _T.DOUBLE):
        return _Piece(4, "f", f"{source.name(short_float)}({{0}})") if kind == _T.FLOAT else _Piece(8, "d")
    if kind == _T.INT24:
        return _Piece(_INT24_BYTES, "3s", f"int.from_bytes({{0}}, 'little', signed={not plan.is_unsigned})")
    if kind == _T.NEWDECIMAL:
        read = source.name(numbers.decimal_reader(length, column.scale))
        size = numbers.decimal_size(length, column.scale)
        return _Piece(size, f"{size}s", f"{read}({{0}})")
    if kind == _T.YEAR:
        return _Piece(1, "B", "{0} and {0} + 1900")
    if kind == _T.BIT:
        size = (length + 7) // 8
        return _Piece(size, f"{size}s", "int.from_bytes({0}, 'big')")
    if kind in (_T.ENUM, _T.SET):
        return _choice_piece(source, plan)
    if temporal := _TEMPORAL.get(kind):
        size, reader = temporal
        size += (length + 1) // 2
        # No date, such as 0000-00-00, is null, or 1970 where the column cannot be null.
        otherwise = "" if column.is_nullable else " or 0"
        return _Piece(size, f"{size}s", f"{source.name(reader)}({{0}}){otherwise}")
    return _Piece(statements=tuple(_variable(source, plan, target)))


_TEMPORAL: Final[Mapping[int, tuple[int, Callable[[bytes], int | None]]]] = {
    _T.DATE: (3, numbers.old_date_days),
    _T.TIME: (3, numbers.old_time_micros),
    _T.DATETIME: (8, numbers.old_datetime_micros),
    _T.TIMESTAMP: (4, lambda raw: int.from_bytes(raw, "little") * numbers.MICROS_PER_SECOND or None),
    _T.TIME2: (_TIME_BYTES, numbers.time2_micros),
    _T.DATETIME2: (_DATETIME_BYTES, numbers.datetime2_micros),
    _T.TIMESTAMP2: (_TIMESTAMP_BYTES, numbers.timestamp2_micros),
}


def short_float(value: float) -> float:
    """A FLOAT as the double with the same digits: 1.1, not 1.10000002384185791015625."""
    for digits in (6, 7, 8):
        short = float(f"{value:.{digits}g}")
        if _FLOAT.unpack(_FLOAT.pack(short))[0] == value:
            return short
    return float(f"{value:.9g}")


def _choice_piece(source: _Source, plan: ColumnPlan) -> _Piece:
    size = plan.column.length
    values = plan.values
    if plan.column.type == _T.ENUM:
        # The number 0 stands for a value that was refused, which reads as the empty text.
        read = source.name(("", *values).__getitem__)
        return _Piece(size, "BH"[size - 1], f"{read}({{0}})")
    read = source.name(_set_reader(values))
    return _Piece(size, f"{size}s", f"{read}({{0}})")


def _set_reader(values: Sequence[str]) -> Callable[[bytes], str]:
    def read(raw: bytes) -> str:
        chosen = int.from_bytes(raw, "little")
        return ",".join(value for index, value in enumerate(values) if chosen >> index & 1)

    return read


def _variable(source: _Source, plan: ColumnPlan, target: str) -> Iterator[str]:
    """The statements that read a value with its length before it."""
    column = plan.column
    if column.type in (_T.VARCHAR, _T.VAR_STRING, _T.STRING, _T.VARCHAR_COMPRESSED):
        width = 1 if column.length <= _SHORT_LENGTH else 2
    else:
        width = column.length
    if width == 1:
        yield "size = data[pos]"
    elif width == 2:
        yield "size = data[pos] | data[pos + 1] << 8"
    else:
        yield f"size = int.from_bytes(data[pos:pos + {width}], 'little')"
    yield f"pos += {width}"
    yield "stop = pos + size"
    yield "if stop > end: raise IndexError"
    yield f"{target} = {_variable_value(source, plan)}"
    yield "pos = stop"


def _variable_value(source: _Source, plan: ColumnPlan) -> str:  # noqa: PLR0911 - one for each kind
    raw = "data[pos:stop]"
    kind = plan.column.type
    if kind in (_T.VARCHAR_COMPRESSED, _T.BLOB_COMPRESSED):
        raw = f"{source.name(_uncompressed)}({raw})"
    if kind == _T.JSON:
        return f"{source.name(json_text)}({raw})"
    if kind == _T.GEOMETRY:
        return raw
    if kind == _T.VECTOR:
        return f"{source.name(_floats)}({raw})"
    if plan.written is not None:
        return f"{source.name(plan.written)}({raw})"
    if plan.charset == BINARY:
        # The zeros that fill a BINARY up are not in the log.
        return f"{raw}.ljust({plan.column.length}, b'\\0')" if kind == _T.STRING else raw
    if plan.charset in ("utf8mb4", "utf8mb3", "utf8"):
        return f"str({raw}, 'utf-8')"
    return f"{source.name(text_decoder(plan.charset))}({raw})"


def _floats(raw: bytes) -> list[float]:
    return [short_float(value) for (value,) in struct.iter_unpack("<f", raw)]


def _uncompressed(raw: bytes) -> bytes:
    """A value of a COMPRESSED column of MariaDB: the method, the length, and the data."""
    if not raw:
        return b""
    method, wrapped, width = raw[0] >> 4, raw[0] & 8, raw[0] & 7
    if method == 0:
        return raw[1:]
    if method != 8:
        raise BinlogError(f"A column in the log is compressed by the unknown method {method}.")
    return zlib.decompress(raw[1 + width :], -zlib.MAX_WBITS if wrapped else zlib.MAX_WBITS)


def _add_partial_bits(source: _Source, plans: Sequence[ColumnPlan]) -> None:
    """Add the code that reads which JSON documents of the next row are given as changes."""
    count = sum(plan.column.type == _T.JSON for plan in plans)
    size = (count + 7) // 8
    source.add(2, "options, pos = packed_length(data, pos)", "partial = 0", "if options & 1:")
    source.add(3, f"partial = int.from_bytes(data[pos:pos + {size}], 'little')", f"pos += {size}")


def _partial_piece(source: _Source, index: int, place: int) -> _Piece:
    """The code of a JSON document after an update: whole, or the changes of the one before."""
    text = source.name(json_text)
    return _Piece(
        statements=(
            "size = int.from_bytes(data[pos:pos + 4], 'little')",
            "pos += 4",
            "stop = pos + size",
            "if stop > end: raise IndexError",
            f"a{index} = apply_changes(b{index}, data[pos:stop]) if partial & {1 << place} else {text}(data[pos:stop])",
            "pos = stop",
        )
    )
