"""Python's garbage collector in processes that move records: it is to find cycles, and not to look at every record."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["COLLECT_AFTER", "collect_seldom"]

COLLECT_AFTER: Final = (50_000, 10, 10)
"""After how many objects more than were dropped the newest are looked through, and after how many such rounds older
ones. Python's own 700 are fewer than a batch holds, so that each is looked through many times while it is made."""


def collect_seldom() -> None:
    """Set what is there apart for good, and have the collector look at what comes less often.

    Call it once the imports are made, before the first record. What is set apart is no more written into, either, so a
    forked process shares it with the one it came from: some 7 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
