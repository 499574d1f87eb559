"""Values that are the same in Python and in parsed JSON, identified by their Python types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final

from connect.data import Schema, Type, logical

__all__ = ["SCHEMALESS", "StructWork", "untouched_types"]

SCHEMALESS: Final = frozenset({str, bool, NoneType})
"""The Python types that pass unchanged where there is no schema."""
_MOST_ENTRIES: Final = 256

Work = Callable[[Any], Any]


def untouched_types(schema: Schema, direct: Mapping[Type, type], *, replace_null: bool) -> frozenset[type]:
    """Return the Python types whose values all pass unchanged; ``direct`` gives them for the non-logical types."""
    types: set[type] = set()
    if schema.type in direct and schema.name not in logical.LOGICAL_NAMES:
        types.add(direct[schema.type])
    if schema.optional and (schema.default is None or not replace_null):
        types.add(NoneType)
    return frozenset(types)


class StructWork(dict[tuple[type, ...], tuple[tuple[str, Work], ...]]):
    """The conversions that a struct needs, by the Python types of its values.

    Most structs of a schema have one of a few combinations of types, and most of their values pass unchanged.
    ``members`` has for each field its name, the types that pass, and the conversion for all others.
    """

    def __init__(self, members: Sequence[tuple[str, frozenset[type], Work]]) -> None:
        super().__init__()
        self._members = members

    def __missing__(self, types: tuple[type, ...]) -> tuple[tuple[str, Work], ...]:
        if len(self) >= _MOST_ENTRIES:
            self.clear()
        pairs = zip(self._members, types, strict=True)
        self[types] = work = tuple((name, do) for (name, kinds, do), kind in pairs if kind not in kinds)
        return work
