"""The garbage collector: kept from scanning what stays anyway, such as modules, and records again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["COLLECT_AFTER", "collect_seldom", "importing"]

COLLECT_AFTER: Final = (50_000, 10, 10)
"""Thresholds for :func:`gc.set_threshold`. Python's default of 700 objects is less than a batch holds, so each batch
would be scanned many times while it is made."""


def collect_seldom() -> None:
    """Exempt the objects that exist now from collection, and collect those that come later less often.

    Call it after the imports, before the first record. Exempt objects are no longer written to by the collector, so a
    forked process shares them with its parent: some 7 MB.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


@contextmanager
def importing() -> Iterator[None]:
    """Collect nothing while modules are imported, and never scan what is there after that.

    A worker of a thousand modules is up sooner, and ends in half the time: the interpreter scans all of them again and
    again as it leaves.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
