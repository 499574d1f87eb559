"""The events of the log, and the packets in which they come, as values."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from connectors.cdc.mysql.binlog.errors import BinlogError
from connectors.cdc.mysql.binlog.json_binary import packed_length

__all__ = [
    "CHECKSUM_BYTES",
    "HEADER_BYTES",
    "ROWS_EVENTS",
    "EventType",
    "Gtid",
    "Header",
    "Query",
    "RowsHead",
    "annotated_query",
    "checksum_of",
    "is_checked",
    "mariadb_gtid",
    "mysql_gtid",
    "parse_header",
    "prepared_xid",
    "query",
    "rotation",
    "rows_head",
    "rows_query",
    "tagged_gtid",
    "unpacked_payload",
    "verified",
    "xid_text",
]

HEADER_BYTES: Final = 19
CHECKSUM_BYTES: Final = 4
_HEADER: Final = struct.Struct("<IBIIIH")
_PREPARED: Final = struct.Struct("<?III")
_PIECE_BYTES: Final = 65_536
"""How much of a compressed transaction is unpacked at a time."""


class EventType:
    """The numbers of the events that are read; those from 160 are MariaDB's."""

    QUERY: Final = 2
    STOP: Final = 3
    ROTATE: Final = 4
    INTVAR: Final = 5
    RAND: Final = 13
    USER_VAR: Final = 14
    FORMAT_DESCRIPTION: Final = 15
    XID: Final = 16
    TABLE_MAP: Final = 19
    WRITE_ROWS_V1: Final = 23
    UPDATE_ROWS_V1: Final = 24
    DELETE_ROWS_V1: Final = 25
    INCIDENT: Final = 26
    HEARTBEAT: Final = 27
    ROWS_QUERY: Final = 29
    WRITE_ROWS: Final = 30
    UPDATE_ROWS: Final = 31
    DELETE_ROWS: Final = 32
    GTID: Final = 33
    ANONYMOUS_GTID: Final = 34
    PREVIOUS_GTIDS: Final = 35
    XA_PREPARE: Final = 38
    PARTIAL_UPDATE_ROWS: Final = 39
    TRANSACTION_PAYLOAD: Final = 40
    HEARTBEAT_V2: Final = 41
    GTID_TAGGED: Final = 42
    ANNOTATE_ROWS: Final = 160
    MARIADB_GTID: Final = 162
    MARIADB_GTID_LIST: Final = 163
    START_ENCRYPTION: Final = 164
    QUERY_COMPRESSED: Final = 165
    WRITE_ROWS_COMPRESSED_V1: Final = 166
    UPDATE_ROWS_COMPRESSED_V1: Final = 167
    DELETE_ROWS_COMPRESSED_V1: Final = 168
    WRITE_ROWS_COMPRESSED: Final = 169
    UPDATE_ROWS_COMPRESSED: Final = 170
    DELETE_ROWS_COMPRESSED: Final = 171


@dataclass(slots=True)
class Header:
    """The start of each event. ``end`` is where the next one begins, modulo 2 to the 32nd; 0 if it is in no file."""

    timestamp: int
    type: int
    server_id: int
    size: int
    end: int
    flags: int


@dataclass(frozen=True, slots=True)
class Gtid:
    """The start of a transaction: its global id, when it was committed there in microseconds, and if it is one event
    without an end."""

    text: str | None
    micros: int | None = None
    is_standalone: bool = False
    is_prepared: bool = False
    """Whether it is the prepared half of a distributed (XA) transaction."""
    is_completed: bool = False
    """Whether it commits or rolls back a prepared one."""


@dataclass(frozen=True, slots=True)
class Query:
    """A statement in the log: BEGIN, COMMIT, or a change of the schema."""

    thread: int
    database: str
    sql: str


@dataclass(frozen=True, slots=True)
class RowsHead:
    """What precedes the rows of an event: their table, the columns they have, and where they lie in ``data``."""

    table_id: int
    operation: str
    """``c``, ``u`` or ``d``."""
    images: tuple[bytes, ...]
    is_partial: bool
    ends_statement: bool
    data: bytes
    start: int


def parse_header(raw: bytes, at: int) -> Header:
    """Read the header of an event."""
    try:
        return Header(*_HEADER.unpack_from(raw, at))
    except struct.error as error:
        raise BinlogError(f"An event of {len(raw) - at} bytes in the log is too short.") from error


def checksum_of(body: bytes) -> bool:
    """Return whether events have checksums, from the end of a format description's body."""
    # One byte names the algorithm, and the event's own checksum always follows: 1 is CRC32, 0 and 255 are none.
    return len(body) > CHECKSUM_BYTES and body[-CHECKSUM_BYTES - 1] == 1


def is_checked(raw: bytes) -> bool:
    """Return whether the last bytes of an event are the CRC32 of those before."""
    view = memoryview(raw)
    return zlib.crc32(view[:-CHECKSUM_BYTES]) == int.from_bytes(view[-CHECKSUM_BYTES:], "little")


def verified(raw: bytes) -> None:
    """Check the CRC32 at the end of an event. Raises :class:`BinlogError` if the event is damaged."""
    if not is_checked(raw):
        raise BinlogError(
            "The checksum of an event in the log is wrong: the log or the connection is damaged. Run mysqlbinlog "
            "--verify-binlog-checksum on the server to see which."
        )


def rotation(body: bytes) -> tuple[str, int]:
    """Return the file and the place at which the log goes on."""
    return body[8:].rstrip(b"\0").decode("utf-8"), int.from_bytes(body[:8], "little")


def query(body: bytes, *, is_compressed: bool = False) -> Query:
    """Read a statement."""
    try:
        thread, _, database_length, _, status_length = struct.unpack_from("<IIBHH", body)
        at = 13 + status_length
        database = body[at : at + database_length].decode("utf-8")
        text = body[at + database_length + 1 :]
        if is_compressed:
            text = _inflated(text)
        return Query(thread, database, text.decode("utf-8", "replace"))
    except struct.error as error:
        raise BinlogError("A statement in the log is damaged.") from error


def prepared_xid(body: bytes) -> str | None:
    """Return the id of the distributed transaction that is prepared here, as statements in the log write it.

    ``None`` if it is committed at the same time (``XA COMMIT ... ONE PHASE``).
    """
    is_committed, form, size, also = _PREPARED.unpack_from(body)
    data = body[_PREPARED.size : _PREPARED.size + size + also]
    if len(data) != size + also:
        raise BinlogError("The end of a prepared transaction in the log is damaged.")
    return None if is_committed else xid_text(data[:size].hex(), data[size:].hex(), form)


def xid_text(global_part: str, branch: str, form: int) -> str:
    """Return the id of a distributed transaction, whose parts are hexadecimal, as ``X'...',X'...',1``."""
    return f"X'{global_part.lower()}',X'{branch.lower()}',{form}"


def rows_query(body: bytes) -> str:
    """Return the statement that made the rows that follow (``binlog_rows_query_log_events``)."""
    return body[1:].decode("utf-8", "replace")


def annotated_query(body: bytes) -> str:
    """Return the statement that made the rows that follow, as MariaDB tells it."""
    return body.decode("utf-8", "replace")


def mysql_gtid(body: bytes, *, is_anonymous: bool) -> Gtid:
    """Read the start of a transaction of MySQL."""
    text = f"{UUID(bytes=body[1:17])}:{int.from_bytes(body[17:25], 'little')}"
    micros = None
    if len(body) >= 49:
        micros = int.from_bytes(body[42:49], "little") & 0x7FFFFFFFFFFFFF
        if body[48] & 0x80:  # The time of the server that wrote it first follows: it is the commit's.
            micros = int.from_bytes(body[49:56], "little")
    return Gtid(None if is_anonymous else text, micros)


def mariadb_gtid(body: bytes, server_id: int) -> Gtid:
    """Read the start of a transaction of MariaDB."""
    sequence, domain, flags = struct.unpack_from("<QIB", body)
    return Gtid(f"{domain}-{server_id}-{sequence}", None, bool(flags & 1), bool(flags & 0x40), bool(flags & 0x80))


def tagged_gtid(body: bytes) -> Gtid:
    """Read the start of a transaction whose GTID has a tag (MySQL 8.3 and later)."""
    try:
        fields = _tagged_fields(body)
        uuid, number, tag, micros = fields
    except (IndexError, UnicodeDecodeError) as error:
        raise BinlogError("A tagged GTID in the log is damaged.") from error
    return Gtid(f"{uuid}:{tag}:{number}" if tag else f"{uuid}:{number}", micros)


def _tagged_fields(body: bytes) -> tuple[UUID, int, str, int | None]:
    """The fields of a self-describing message: each has its number, and a value that only that number explains."""
    at = 0
    for _ in range(3):  # The format's version, the size, and the last field that a reader must know.
        _, at = _varlen(body, at)
    uuid, number, tag = UUID(int=0), 0, ""
    immediate: int | None = None
    original: int | None = None
    while at < len(body):
        kind, at = _varlen(body, at)
        if kind == 1:
            values = []
            for _ in range(16):
                value, at = _varlen(body, at)
                values.append(value)
            uuid = UUID(bytes=bytes(values))
        elif kind == 2:
            packed, at = _varlen(body, at)
            number = packed >> 1
        elif kind == 3:
            size, at = _varlen(body, at)
            tag = body[at : at + size].decode("ascii")
            at += size
        else:
            value, at = _varlen(body, at)
            immediate = value if kind == 6 else immediate
            original = value if kind == 7 else original
    return uuid, number, tag, original if original is not None else immediate


def _varlen(raw: bytes, at: int) -> tuple[int, int]:
    """A number whose first byte tells by its lowest ones how many bytes follow."""
    first = raw[at]
    more = 0
    while more < 8 and first >> more & 1:
        more += 1
    size = more + 1
    packed = int.from_bytes(raw[at : at + size], "little")
    return packed >> min(size, 8), at + size


def rows_head(body: bytes, kind: int) -> RowsHead:
    """Read what precedes the rows of an event, and unpack them if MariaDB has compressed them."""
    try:
        table_id = int.from_bytes(body[:6], "little")
        flags = body[6] | body[7] << 8
        at = 8
        if kind in _SECOND_VERSION:
            at += body[8] | body[9] << 8
        count, at = packed_length(body, at)
        size = (count + 7) // 8
        operation = _OPERATIONS[kind]
        number = 2 if operation == "u" else 1
        images = tuple(body[at + size * index : at + size * (index + 1)] for index in range(number))
        at += size * number
    except IndexError as error:
        raise BinlogError("A rows event in the log is damaged.") from error
    ends = bool(flags & 1)
    if kind >= EventType.WRITE_ROWS_COMPRESSED_V1:
        return RowsHead(table_id, operation, images, False, ends, _inflated(body[at:]), 0)
    return RowsHead(table_id, operation, images, kind == EventType.PARTIAL_UPDATE_ROWS, ends, body, at)


_OPERATIONS: Final = {
    EventType.WRITE_ROWS_V1: "c",
    EventType.UPDATE_ROWS_V1: "u",
    EventType.DELETE_ROWS_V1: "d",
    EventType.WRITE_ROWS: "c",
    EventType.UPDATE_ROWS: "u",
    EventType.DELETE_ROWS: "d",
    EventType.PARTIAL_UPDATE_ROWS: "u",
    EventType.WRITE_ROWS_COMPRESSED_V1: "c",
    EventType.UPDATE_ROWS_COMPRESSED_V1: "u",
    EventType.DELETE_ROWS_COMPRESSED_V1: "d",
    EventType.WRITE_ROWS_COMPRESSED: "c",
    EventType.UPDATE_ROWS_COMPRESSED: "u",
    EventType.DELETE_ROWS_COMPRESSED: "d",
}
ROWS_EVENTS: Final = frozenset(_OPERATIONS)
_SECOND_VERSION: Final = frozenset(
    {EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS, EventType.PARTIAL_UPDATE_ROWS}
    | {EventType.WRITE_ROWS_COMPRESSED, EventType.UPDATE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED}
)


def _inflated(raw: bytes) -> bytes:
    """What MariaDB has compressed (``log_bin_compress``): a byte of flags, the length, and zlib's data."""
    width = raw[0] & 7 if raw else 0
    if not raw or not raw[0] & 0x80 or raw[0] >> 4 & 7:
        raise BinlogError("A compressed event in the log has an unknown form.")
    try:
        return zlib.decompress(raw[1 + width :])
    except zlib.error as error:
        raise BinlogError("A compressed event in the log is damaged.") from error


def unpacked_payload(body: bytes) -> Iterator[bytes]:
    """Yield the events of a compressed transaction of MySQL, unpacked piece by piece.

    Memory is bounded by the largest event, not by the transaction.
    """
    at, method, end = 0, 0, len(body)
    while True:
        kind, at = packed_length(body, at)
        if kind == 0:
            break
        size, at = packed_length(body, at)
        if kind == 2:
            method, _ = packed_length(body, at)
        at += size
    if method == 255:
        yield from _events([body[at:end]])
    elif method == 0:
        yield from _events(_zstd_pieces(body, at))
    else:
        raise BinlogError(f"A transaction in the log is compressed by the unknown method {method}.")


def _zstd_pieces(body: bytes, at: int) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415 - few logs are compressed

    try:
        with ZstdDecompressor().stream_reader(memoryview(body)[at:], read_across_frames=True) as reader:
            while piece := reader.read(_PIECE_BYTES):
                yield piece
    except ZstdError as error:
        raise BinlogError("A compressed transaction in the log is damaged.") from error


def _events(pieces: Iterator[bytes] | list[bytes]) -> Iterator[bytes]:
    kept = bytearray()
    for piece in pieces:
        kept += piece
        at = 0
        while len(kept) - at >= HEADER_BYTES:
            size = int.from_bytes(kept[at + 9 : at + 13], "little")
            if size < HEADER_BYTES:
                raise BinlogError("A compressed transaction in the log is damaged.")
            if len(kept) - at < size:
                break
            yield bytes(kept[at : at + size])
            at += size
        del kept[:at]
    if kept:
        raise BinlogError("A compressed transaction in the log ends in the middle of an event.")
