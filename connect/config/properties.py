"""Parsing of Java's ``.properties`` files, as ``java.util.Properties`` does it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from connect.errors import ConnectError

__all__ = ["PropertiesError", "parse_properties", "read_properties"]

_BLANKS: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_KEY: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*(?:[=:][ \t\f]*)?")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ConnectError):
    """A properties file cannot be read; ``line`` is the number of the malformed line, if there is one."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_properties(path: str | Path) -> dict[str, str]:
    """Return the properties in the file at ``path``, which is UTF-8, with or without a byte order mark."""
    try:
        return parse_properties(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise PropertiesError(f"Cannot read the properties file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PropertiesError(f"The properties file {path} is not UTF-8; convert it or use \\uXXXX escapes") from error
    except PropertiesError as error:
        raise PropertiesError(f"{path}: {error}", error.line) from error


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the properties in ``text``; if a key is given twice, its last value counts.

    A ``\u`` without four hexadecimal digits is a ``PropertiesError``.
    """
    properties = {}
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        properties[_unescape(key[0], number)] = _unescape(line[separator.end() :], number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    first, parts = 0, list[str]()
    for number, physical in enumerate(_LINE_END.split(text), start=1):
        line = physical.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        if not _is_continued(line):
            yield first, "".join([*parts, line])
            parts = []
        elif len(line) > 1:
            parts.append(line[:-1])
    if parts:
        yield first, "".join(parts)


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, line: int) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise PropertiesError(f"Malformed \\uxxxx encoding in line {line}: give four hexadecimal digits", line)
        return _ESCAPED.get(escaped, escaped)

    unescaped = _ESCAPE.sub(character, text)
    # Beyond the basic plane Java writes two escapes, one for each half of a surrogate pair.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
