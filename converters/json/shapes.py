"""Which fields of a struct need work, learned from the structs that come along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["Shapes"]

_MOST: Final = 256

Work = Callable[[Any], Any]


class Shapes(dict[tuple[type, ...], tuple[tuple[str, Work], ...]]):
    """The work to be done on a struct, by the Python types of its values.

    Most structs of a schema have values of the same few combinations of types, and most of those values can be passed
    on as they are. ``members`` has for each field its name, the types that can, and the work to be done on the others.
    """

    def __init__(self, members: Sequence[tuple[str, frozenset[type], Work]]) -> None:
        super().__init__()
        self._members = members

    def __missing__(self, types: tuple[type, ...]) -> tuple[tuple[str, Work], ...]:
        if len(self) >= _MOST:
            self.clear()
        pairs = zip(self._members, types, strict=True)
        self[types] = work = tuple((name, do) for (name, kinds, do), kind in pairs if kind not in kinds)
        return work
