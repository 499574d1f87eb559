"""Finds the bad rows among many, by halves: a few cost little more than none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["isolate"]


def isolate(
    count: int, attempt: Callable[[int, int], None], blames_row: Callable[[Exception], bool]
) -> Iterator[tuple[int, Exception]]:
    """Attempt rows ``0`` to ``count`` in order, and yield each that fails with its error.

    ``attempt`` does the rows from a first up to a last, all of them or none. An error that does not blame a row is
    raised. For ``k`` bad rows there are some ``2 k log2(count / k)`` attempts.
    """
    left = [(0, count)]
    while left:
        start, stop = left.pop()
        try:
            attempt(start, stop)
        except Exception as error:
            if not blames_row(error):
                raise
            if stop - start == 1:
                yield start, error
                continue
            middle = (start + stop) // 2
            left += [(middle, stop), (start, middle)]
