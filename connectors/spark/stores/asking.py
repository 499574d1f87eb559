"""Questions to a store about many files: as many at once as it takes, for it may be far away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from connectors.spark.stores.store import Store

__all__ = ["ask_all"]

Q = TypeVar("Q")
A = TypeVar("A")


def ask_all(store: Store, question: Callable[[Q], A], about: Sequence[Q]) -> list[A]:
    """The answers in their order; the first error if there is one."""
    if store.concurrency == 1:
        # Threads of their own would each need a connection to Spark's Java.
        return [question(each) for each in about]
    with ThreadPoolExecutor(store.concurrency) as threads:
        return list(threads.map(question, about))
