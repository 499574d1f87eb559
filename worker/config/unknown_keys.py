"""Keys that look like ones there are: as in Kafka Connect they are no error, but the log asks what was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final

__all__ = ["suggest_known_keys"]

_LIKENESS: Final = 0.88
"""So that ``batch.sise`` asks for ``batch.size``, and what a plugin passes on, such as ``spark.*``, for nothing."""


def suggest_known_keys(keys: Collection[str], known: set[str]) -> Iterator[str]:
    """What to say of each key that is none of the known ones and much like one of them that is not given."""
    missing = known.difference(keys)
    for key in keys:
        if key not in known and (meant := get_close_matches(key, missing, n=1, cutoff=_LIKENESS)):
            yield f"The key {key} is not known. Is {meant[0]} meant?"
