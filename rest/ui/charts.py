"""Charts of connectors: lines for a list, and graphs with axes for a page; drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from worker.metrics.history import Part, Series

__all__ = ["SPANS", "Charts", "Graph", "Sparkline", "charts_of", "graphs_of", "sparkline"]


SPANS: Final = {300: ("5 minutes", 2), 3_600: ("1 hour", 60), 21_600: ("6 hours", 120), 86_400: ("24 hours", 300)}
"""How far back a graph may go, in seconds: what that is called, and the seconds between its values."""
_MARGIN: Final = 1.5
_GRAPH: Final = (600, 120)


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


@dataclass(frozen=True, slots=True)
class Graph:
    """A line over time with axes. ``top`` is the value of its upper edge, the lower one is 0.

    ``values`` are at even distances of ``step`` seconds, the last at ``end``, in seconds since 1970; ``ticks`` are
    the times of the left edge, the middle and the right edge, in ISO 8601.
    """

    label: str
    line: Sparkline
    top: float
    values: Sequence[float | None]
    end: int
    step: int
    ticks: Sequence[str]
    unit: str


def graphs_of(part: Part, connector: str, seconds: int, step: int) -> list[Graph]:
    """Return the graphs of a connector over so many seconds: of its rate, and of its lag if that is known."""
    series = part.connectors.get(connector)
    if series is None:
        return []
    end, count = part.end * step, seconds // step
    found = [
        _graph("Records per second", series.rate, "records/s", end, step, count),
        _graph(f"Lag in {series.unit or 'records'}", series.lag, series.unit or "records", end, step, count),
    ]
    return [graph for graph in found if graph is not None]


def _graph(label: str, values: Sequence[float | None], unit: str, end: int, step: int, count: int) -> Graph | None:
    whole = [*[None] * (count - len(values)), *values[-count:]]
    top = _round_top(max((value for value in whole if value is not None), default=0.0))
    line = sparkline(whole, label, width=_GRAPH[0], height=_GRAPH[1], top=top)
    if line is None:
        return None
    ticks = [_iso(end - back * step) for back in (count - 1, (count - 1) // 2, 0)]
    rounded = [None if value is None else round(value, 1) for value in whole]
    return Graph(label, line, top, rounded, end, step, ticks, unit)


def _round_top(most: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below a value."""
    power = 10.0 ** math.floor(math.log10(most)) if most > 0 else 1.0
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= most)


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def sparkline(
    values: Sequence[float | None], what: str, *, width: int = 90, height: int = 18, top: float | None = None
) -> Sparkline | None:
    """Draw values at even distances; ``None`` if fewer than two are known.

    The box begins at 0, so that lines can be compared, and ends at ``top``, or the greatest value; an unknown value
    leaves a gap in the line.
    """
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    top = top or max(known) or 1.0
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
