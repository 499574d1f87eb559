"""Protection against map keys chosen to share a hash, as numbers can be: a dict would compare each with all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from connect.errors import DataError

__all__ = ["MOST_ALIKE", "refuse_colliding_keys"]

MOST_ALIKE: Final = 100
"""The maximum number of different keys that may share a hash."""


def refuse_colliding_keys(keys: Sequence[Any]) -> None:
    """Raise a :class:`~connect.errors.DataError` if too many different keys share a hash."""
    if len(keys) <= MOST_ALIKE:
        return
    hashes = list(map(hash, keys))
    most, count = Counter(hashes).most_common(1)[0]
    if count > MOST_ALIKE:
        alike = {str(key) for key, number in zip(keys, hashes, strict=True) if number == most}
        if len(alike) > MOST_ALIKE:
            raise DataError(f"A map has more than {MOST_ALIKE} different keys with the same hash.")
