"""The heap of a process that many units share. Where the C library is not glibc, nothing is done."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

__all__ = ["give_back", "share_arenas"]

_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def share_arenas() -> None:
    """Let all threads that start from now on share a few arenas: by default there are eight for each processor.

    Each keeps what its threads have needed at their busiest.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give memory back that is not used any more, such as that of starts; takes some milliseconds."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
