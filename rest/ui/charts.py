"""Charts of the last minutes of each connector, drawn as SVG lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from worker.metrics.history import Part, Series

__all__ = ["Charts", "Sparkline", "charts_of", "sparkline"]


_MARGIN: Final = 1.5


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A line as the ``d`` attribute of an SVG path, with a description in words for screen readers."""

    path: str
    width: int
    height: int
    words: str


@dataclass(frozen=True, slots=True)
class Charts:
    """The lines and newest values of one connector; ``None`` if unknown, or too little to draw."""

    rate: Sparkline | None
    lag: Sparkline | None
    newest_rate: float | None
    newest_lag: float | None
    unit: str | None


def charts_of(part: Part, width: int = 90, height: int = 18) -> dict[str, Charts]:
    """Return the charts of each connector with a history."""
    return {name: _charts(series, width, height) for name, series in part.connectors.items()}


def _charts(series: Series, width: int, height: int) -> Charts:
    return Charts(
        sparkline(series.rate, "Records per second", width=width, height=height),
        sparkline(series.lag, f"Lag in {series.unit or 'records'}", width=width, height=height),
        series.rate[-1] if series.rate else None,
        series.lag[-1] if series.lag else None,
        series.unit,
    )


def sparkline(values: Sequence[float | None], what: str, *, width: int = 90, height: int = 18) -> Sparkline | None:
    """Draw values at even distances; ``None`` if fewer than two are known.

    The box begins at 0, so that lines can be compared; an unknown value leaves a gap in the line.
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
