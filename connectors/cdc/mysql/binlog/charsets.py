"""Character sets of MySQL and MariaDB, and how their bytes become text."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from connectors.cdc.mysql.binlog.errors import BinlogError

__all__ = ["BINARY", "Decoder", "text_decoder"]

BINARY: Final = "binary"

Decoder: TypeAlias = Callable[[bytes], str]

_LATIN1: Final = "".join(bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(256))
"""MySQL's latin1: Windows-1252, whose five holes are control characters here."""

_CODECS: Final[Mapping[str, str]] = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "utf8": "utf-8",
    "ascii": "iso8859-1",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "big5": "big5",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "macroman": "mac-roman",
    "macce": "mac-latin2",
    "tis620": "cp874",
    "hp8": "hp-roman8",
    "binary": "iso8859-1",
}


def text_decoder(charset: str) -> Decoder:
    """Return what decodes the text of a character set. Raises :class:`BinlogError` for one that Python lacks."""
    if charset == "latin1":
        return _latin1
    name = _CODECS.get(charset)
    if name is None:
        raise BinlogError(
            f"The character set {charset} is not supported: convert the column to utf8mb4, or leave it out with "
            "column.exclude.list."
        )
    decode = codecs.lookup(name).decode
    return lambda raw: decode(raw)[0]


def _latin1(raw: bytes) -> str:
    return codecs.charmap_decode(raw, "strict", _LATIN1)[0]
