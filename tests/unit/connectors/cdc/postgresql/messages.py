"""Messages of ``pgoutput``, written for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from connectors.cdc.postgresql.pgoutput import EPOCH_2000_US

__all__ = ["begin", "commit", "delete", "insert", "message", "relation", "truncate", "update"]

AT_US = 1_700_000_000_000_000
UNCHANGED = object()


def _framed(lsn: int, payload: bytes) -> bytes:
    return b"w" + struct.pack(">QQq", lsn, lsn, 0) + payload


def _row(values: Sequence[object]) -> bytes:
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            text = str(value).encode()
            parts.append(b"t" + struct.pack(">I", len(text)) + text)
    return b"".join(parts)


def begin(lsn: int, xid: int) -> bytes:
    return _framed(lsn, b"B" + struct.pack(">QqI", lsn, AT_US - EPOCH_2000_US, xid))


def commit(end: int) -> bytes:
    return _framed(end, b"C" + struct.pack(">BQQq", 0, end - 1, end, AT_US - EPOCH_2000_US))


def relation(oid: int, name: str, columns: Sequence[tuple[str, int, bool]], identity: str = "d") -> bytes:
    parts = [b"R", struct.pack(">I", oid), b"public\0", name.encode() + b"\0", identity.encode()]
    parts.append(struct.pack(">H", len(columns)))
    parts += [
        bytes([is_key]) + column.encode() + b"\0" + struct.pack(">Ii", kind, -1) for column, kind, is_key in columns
    ]
    return _framed(0, b"".join(parts))


def insert(lsn: int, oid: int, *values: object) -> bytes:
    return _framed(lsn, b"I" + struct.pack(">I", oid) + b"N" + _row(values))


def update(lsn: int, oid: int, old: Sequence[object] | None, new: Sequence[object], kind: bytes = b"K") -> bytes:
    before = b"" if old is None else kind + _row(old)
    return _framed(lsn, b"U" + struct.pack(">I", oid) + before + b"N" + _row(new))


def delete(lsn: int, oid: int, old: Sequence[object], kind: bytes = b"K") -> bytes:
    return _framed(lsn, b"D" + struct.pack(">I", oid) + kind + _row(old))


def truncate(lsn: int, *oids: int) -> bytes:
    return _framed(lsn, b"T" + struct.pack(f">IB{len(oids)}I", len(oids), 0, *oids))


def message(lsn: int, prefix: str, content: bytes, *, is_transactional: bool) -> bytes:
    head = struct.pack(">BQ", is_transactional, lsn)
    return _framed(lsn, b"M" + head + prefix.encode() + b"\0" + struct.pack(">I", len(content)) + content)
