"""Which tables and columns are captured, which columns are masked, and which make the key.

All expressions are Java's, match a whole name, and ignore case: ``table.include.list`` names tables as ``str`` of a
:class:`~connect.kits.cdc.tables.TableId` does, columns are named below them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.config import invalid_value, validator
from connect.data import Type
from connect.internals.java.regex import regex_from_java
from connect.kits.cdc.conversion import Conversion
from connect.kits.cdc.tables import Column, Table, TableId

__all__ = [
    "ColumnRules",
    "KeyRules",
    "NameFilter",
    "java_regex_list",
    "key_columns_list",
    "name_patterns",
]

_COMMA: Final = re.compile(r"(?<!\\),")


def name_patterns(expressions: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Compile Java's regular expressions, to be matched as a whole and without regard to case."""
    return tuple(regex_from_java(f"(?i){text}") for text in expressions if text)


def _split(text: str) -> list[str]:
    return [part.strip().replace("\\,", ",") for part in _COMMA.split(text) if part.strip()]


@validator("list of regular expressions")
def java_regex_list(key: str, value: Iterable[str]) -> None:
    """Refuse a list with an item that is not a regular expression of Java's."""
    for item in value:
        try:
            name_patterns([item])
        except re.error as error:
            raise invalid_value(key, item, f"Invalid regex: {error}. Separate expressions by commas.") from error


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Accepts names that an expression of ``included`` matches, or, without those, none of ``excluded``."""

    included: tuple[re.Pattern[str], ...] = ()
    excluded: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, included: Sequence[str], excluded: Sequence[str]) -> NameFilter:
        """Make the filter of two lists of expressions."""
        return cls(name_patterns(included), name_patterns(excluded))

    def __call__(self, name: str) -> bool:
        if self.included:
            return any(pattern.fullmatch(name) for pattern in self.included)
        return not any(pattern.fullmatch(name) for pattern in self.excluded)


_MASK_CHARS: Final = re.compile(r"column\.mask\.with\.(\d+)\.chars")
_MASK_HASH: Final = re.compile(r"column\.mask\.hash(?P<v2>\.v2)?\.(?P<algorithm>[^.]+)\.with\.salt\.(?P<salt>.+)")
_TRUNCATE: Final = re.compile(r"column\.truncate\.to\.(\d+)\.chars")
_Mask = Callable[[Column, Conversion], Conversion]
_SHORT_STRING: Final = 65_535


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """What the ``column.*`` keys say of columns.

    ``masks`` pairs expressions with the change of a column's conversion, ``propagated`` are the expressions for columns
    and ``propagated_types`` those for types whose declaration is kept in the parameters of the schema, with the comment
    of the column if ``tells_comments``.
    """

    filter: NameFilter = NameFilter()
    masks: tuple[tuple[tuple[re.Pattern[str], ...], _Mask], ...] = ()
    propagated: tuple[re.Pattern[str], ...] = ()
    propagated_types: tuple[re.Pattern[str], ...] = ()
    tells_comments: bool = False

    def includes(self, table: TableId, column: Column) -> bool:
        """Return whether the column is part of its table's records."""
        return self.filter(f"{table}.{column.name}")

    def masked(self, table: TableId, column: Column, conversion: Conversion) -> Conversion:
        """Return the conversion with the masks of the column, if its values are texts."""
        name = f"{table}.{column.name}"
        for patterns, mask in self.masks:
            if conversion.schema.type is Type.STRING and any(pattern.fullmatch(name) for pattern in patterns):
                conversion = mask(column, conversion)
        return conversion

    def is_propagated(self, table: TableId, column: Column) -> bool:
        """Return whether the schema tells the column's declared type."""
        name, kind = f"{table}.{column.name}", f"{table}.{column.type_name}"
        return any(pattern.fullmatch(name) for pattern in self.propagated) or any(
            pattern.fullmatch(kind) or pattern.fullmatch(column.type_name) for pattern in self.propagated_types
        )


def masks_of(props: Mapping[str, str | None]) -> Iterator[tuple[tuple[re.Pattern[str], ...], _Mask]]:
    """Yield the masks that the keys of a configuration ask for."""
    for key, value in props.items():
        mask = _mask(key)
        if mask is not None and value:
            yield name_patterns(_split(value)), mask


def _mask(key: str) -> _Mask | None:
    if match := _MASK_CHARS.fullmatch(key):
        return _stars(int(match[1]))
    if match := _TRUNCATE.fullmatch(key):
        return _truncation(int(match[1]))
    if match := _MASK_HASH.fullmatch(key):
        return _hashing(match["algorithm"], match["salt"].encode(), str.encode if match["v2"] else _java_serialized)
    return None


def _stars(length: int) -> _Mask:
    """Return the mask that shows asterisks in place of every text."""
    stars = "*" * length
    return lambda column, conversion: Conversion(conversion.schema, lambda _: stars)  # noqa: ARG005


def _truncation(length: int) -> _Mask:
    def mask(column: Column, conversion: Conversion) -> Conversion:  # noqa: ARG001
        convert = conversion.convert
        return Conversion(conversion.schema, lambda value: convert(value)[:length])

    return mask


def _hashing(algorithm: str, salt: bytes, written: Callable[[str], bytes]) -> _Mask:
    """Return the mask that shows the hash of salt and text as hexadecimal, cut to the length of the column."""
    name = algorithm.replace("-", "").lower()
    hashlib.new(name)

    def mask(column: Column, conversion: Conversion) -> Conversion:
        convert, length = conversion.convert, column.length

        def hashed(value: Any) -> str:
            return hashlib.new(name, salt + written(convert(value))).hexdigest()[:length]

        return Conversion(conversion.schema, hashed)

    return mask


def _java_serialized(text: str) -> bytes:
    """Return a string as Java's serialization writes it, which the first version of the hash includes."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2)]
    modified = b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in units)
    if len(modified) > _SHORT_STRING:
        return b"\xac\xed\x00\x05\x7c" + len(modified).to_bytes(8, "big") + modified
    return b"\xac\xed\x00\x05\x74" + len(modified).to_bytes(2, "big") + modified


@validator("tables and their key columns, such as inventory.customers:id;(.*).orders:number,line")
def key_columns_list(key: str, value: str) -> None:
    """Refuse what is not a list of expressions for tables with the names of columns."""
    try:
        KeyRules.of(value)
    except (ValueError, re.error) as error:
        raise invalid_value(key, value, str(error)) from error


@dataclass(frozen=True, slots=True)
class KeyRules:
    """``message.key.columns``: expressions for tables, and the columns of the keys of their records."""

    rules: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, text: str) -> KeyRules:
        """Parse the value of the key."""
        return cls(tuple(_key_rule(part) for part in text.split(";") if part.strip()))

    def key_columns(self, table: Table) -> tuple[str, ...]:
        """Return the names of the columns of the key; those of the table's own key if no rule applies."""
        for pattern, columns in self.rules:
            if pattern.fullmatch(str(table.id)):
                return tuple(name for name in columns if table.column(name) is not None)
        return table.key_columns


def _key_rule(text: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    table, colon, columns = text.strip().rpartition(":")
    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    if not colon or not table or not names:
        raise ValueError(f"{text!r} does not name a table and its columns: write TABLE:COLUMN,COLUMN")
    return name_patterns([table.strip()])[0], names
