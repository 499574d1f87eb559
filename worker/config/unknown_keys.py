"""Unknown keys: as in Kafka Connect they are no error, but the log suggests the known key that was meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final

__all__ = ["suggest_known_keys"]

_LIKENESS: Final = 0.88
"""High enough that keys which a plugin passes on, such as ``spark.*``, bring no suggestion."""

_SHORT: Final = 6
_LIKENESS_OF_SHORT: Final = 0.74
"""One wrong letter of four: nobody passes on keys so short."""


def suggest_known_keys(keys: Collection[str], known: set[str]) -> Iterator[str]:
    """Suggest a known key for each unknown one that resembles it; keys that are set already are not suggested."""
    missing = known.difference(keys)
    for key in keys:
        cutoff = _LIKENESS if len(key) > _SHORT else _LIKENESS_OF_SHORT
        if key not in known and (meant := get_close_matches(key, missing, n=1, cutoff=cutoff)):
            yield f"The key {key} is unknown. Did you mean {meant[0]}?"
