"""Small charts as SVG: the points of a line, scaled to a box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Sparkline", "sparkline"]

_MARGIN: Final = 1.5


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A line, as the ``d`` of an SVG path, and what it says in words for those who do not see it."""

    path: str
    width: int
    height: int
    words: str


def sparkline(values: Sequence[float | None], what: str, *, width: int = 90, height: int = 18) -> Sparkline | None:
    """The line of some values at even distances, or ``None`` if there are fewer than two.

    The box begins at 0, so that lines can be compared; where a value is unknown the line has a gap.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    top = max(known) or 1.0
    step = (width - 2 * _MARGIN) / (len(values) - 1)
    room = height - 2 * _MARGIN
    parts, pen = [], "M"
    for number, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        parts.append(f"{pen}{_MARGIN + number * step:.1f} {_MARGIN + room * (1 - max(value, 0.0) / top):.1f}")
        pen = "L"
    words = f"{what}: between {min(known):,.0f} and {max(known):,.0f}, now {known[-1]:,.0f}"
    return Sparkline("".join(parts), width, height, words)
