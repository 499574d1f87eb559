"""``/ui/topology``: which sources write which topics, and which sinks read them, as a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flask import Blueprint, Response, request

from rest.access.caller import caller
from rest.http.timeouts import Patience
from rest.ui.page import shown
from rest.ui.summaries import ConnectorSummary, summaries
from worker.herder.connectors.requests import ConnectorRequests

__all__ = ["Drawing", "Link", "Node", "drawn", "links_of", "topology_page"]

MOST_NODES: Final = 300
"""How many connectors and topics a page draws; a search finds the others."""
_WIDTH: Final = 260
_HEIGHT: Final = 30
_ROW: Final = 42
_GAP: Final = 150
_MARGIN: Final = 8
_MOST_CHARACTERS: Final = 30


@dataclass(frozen=True, slots=True)
class Link:
    """A connector that writes a topic (a source) or reads it (a sink)."""

    connector: str
    topic: str
    writes: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A box of the graph: a connector, or a topic if there is no ``connector``. Its column counts from 0."""

    name: str
    column: int
    x: float
    y: float
    connector: ConnectorSummary | None

    @property
    def short(self) -> str:
        """As much of the name as the box has room for: its two ends, since names of a kind begin alike."""
        if len(self.name) <= _MOST_CHARACTERS:
            return self.name
        end = _MOST_CHARACTERS // 2
        return f"{self.name[: _MOST_CHARACTERS - 1 - end]}…{self.name[-end:]}"


@dataclass(frozen=True, slots=True)
class Drawing:
    """The boxes, and the lines between them as ``d`` attributes, each with its connector's trouble."""

    nodes: Sequence[Node]
    lines: Sequence[tuple[str, str]]
    width: float
    height: float
    box: tuple[int, int] = (_WIDTH, _HEIGHT)


def topology_page(blueprint: Blueprint, connectors: ConnectorRequests, patience: Patience) -> None:
    """Add the page to the blueprint."""

    @blueprint.get("/topology")
    def topology() -> Response:
        views = patience.wait(connectors.expanded())
        visible = {name: views[name] for name in caller().visible(views)}
        used = patience.wait(connectors.used_topics())
        found = {connector.name: connector for connector in summaries(visible)}
        links = links_of(visible, used)
        wanted = request.args.get("q", "")
        chosen = _matching(links, wanted)
        drawing = drawn(chosen, found)
        return shown("topology.html", drawing=drawing, wanted=wanted, links=chosen, total=len(links), most=MOST_NODES)


def links_of(views: Mapping[str, Mapping[str, Any]], used: Mapping[str, Sequence[str]]) -> list[Link]:
    """Return which connectors write and read which topics: those they have used, and those that sinks name."""
    found = []
    for name, view in sorted(views.items()):
        info = view.get("info", {})
        is_sink = info.get("type") == "sink"
        named = str(info.get("config", {}).get("topics", "")) if is_sink else ""
        topics = {*used.get(name, ()), *(topic.strip() for topic in named.split(","))} - {""}
        found += [Link(name, topic, not is_sink) for topic in sorted(topics)]
    return found


def _matching(links: Sequence[Link], wanted: str) -> list[Link]:
    """Return the links whose connector or topic has a text in its name, with those of the same topics."""
    text = wanted.casefold()
    topics = {link.topic for link in links if text in link.connector.casefold() or text in link.topic.casefold()}
    return [link for link in links if link.topic in topics]


def drawn(links: Sequence[Link], connectors: Mapping[str, ConnectorSummary]) -> Drawing:
    """Lay out sources, if any, topics and sinks in columns, ordered by their connections, so that few lines cross."""
    links = _few(links)
    sources = _placed(sorted({link.connector for link in links if link.writes}), {})
    topics = _placed(
        sorted({link.topic for link in links}), _means([(link.topic, sources.get(link.connector)) for link in links])
    )
    sinks = _placed(
        sorted({link.connector for link in links if not link.writes}),
        _means([(link.connector, topics[link.topic]) for link in links if not link.writes]),
    )
    # A phone shows what is on the left.
    ordered = (sources, topics, sinks) if sources else (topics, sinks)
    most = max(map(len, ordered))
    columns = [_spread(rows, most) for rows in ordered]
    nodes = [
        Node(name, column, _x(column), _y(row), None if ordered[column] is topics else connectors.get(name))
        for column, rows in enumerate(columns)
        for name, row in rows.items()
    ]
    lines = [_line(link, columns, connectors) for link in links]
    height = most * _ROW + 2 * _MARGIN
    return Drawing(nodes, lines, _x(len(columns) - 1) + _WIDTH + _MARGIN, height)


def _few(links: Sequence[Link]) -> list[Link]:
    """Return as many links, from the first on, as have no more ends than a page draws."""
    ends: set[tuple[bool, str]] = set()
    found = []
    for link in links:
        ends |= {(True, link.topic), (False, link.connector)}
        if len(ends) > MOST_NODES:
            break
        found.append(link)
    return found


def _placed(names: Sequence[str], wanted: Mapping[str, float]) -> dict[str, int]:
    """Return the rows of a column's boxes, ordered by the rows they would like to be in."""
    ordered = sorted(names, key=lambda name: (wanted.get(name, float("inf")), name))
    return {name: row for row, name in enumerate(ordered)}


def _spread(rows: Mapping[str, int], most: int) -> dict[str, float]:
    """Return the rows of a column divided over the ``most`` rows of the longest, so that lines are short."""
    return {name: (row + 0.5) * most / len(rows) - 0.5 for name, row in rows.items()}


def _means(rows: Sequence[tuple[str, int | None]]) -> dict[str, float]:
    known: dict[str, list[int]] = {}
    for name, row in rows:
        if row is not None:
            known.setdefault(name, []).append(row)
    return {name: sum(at) / len(at) for name, at in known.items()}


def _line(
    link: Link, columns: Sequence[Mapping[str, float]], connectors: Mapping[str, ConnectorSummary]
) -> tuple[str, str]:
    column = 0 if link.writes else len(columns) - 2
    begin, end = (link.connector, link.topic) if link.writes else (link.topic, link.connector)
    left, right = _x(column) + _WIDTH, _x(column + 1)
    above, below = (_y(columns[column + place][name]) + _HEIGHT / 2 for place, name in enumerate((begin, end)))
    middle = (left + right) / 2
    path = f"M{left:g} {above:g}C{middle:g} {above:g} {middle:g} {below:g} {right:g} {below:g}"
    return path, connectors[link.connector].trouble.word


def _x(column: int) -> float:
    return _MARGIN + column * (_WIDTH + _GAP)


def _y(row: float) -> float:
    return _MARGIN + row * _ROW
