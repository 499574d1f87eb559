"""Which connectors are connected by which topics, and how that is drawn."""

from __future__ import annotations

from typing import Any

from rest.ui.summaries import summaries
from rest.ui.topology import MOST_NODES, Link, drawn, links_of

VIEWS: dict[str, dict[str, Any]] = {
    "shop": {"info": {"type": "source", "config": {"topic": "x"}}},
    "crm": {"info": {"type": "source", "config": {}}},
    "lake": {"info": {"type": "sink", "config": {"topics": "orders, customers"}}},
    "search": {"info": {"type": "sink", "config": {"topics.regex": ".*"}}},
    "new": {"info": {}},
}
USED = {"shop": ["orders"], "crm": ["customers"], "search": ["customers"]}
LINKS = [
    Link("crm", "customers", True),
    Link("lake", "customers", False),
    Link("lake", "orders", False),
    Link("search", "customers", False),
    Link("shop", "orders", True),
]


def test_sources_write_what_they_have_used_and_sinks_read_what_they_name_too() -> None:
    assert links_of(VIEWS, USED) == LINKS


def test_each_is_drawn_once_beside_what_it_is_connected_to() -> None:
    found = {connector.name: connector for connector in summaries(VIEWS)}
    drawing = drawn(LINKS, found)
    assert [(node.name, node.column) for node in drawing.nodes] == [
        ("crm", 0),
        ("shop", 0),
        ("customers", 1),
        ("orders", 1),
        ("search", 2),
        ("lake", 2),
    ]
    assert len(drawing.lines) == len(LINKS)
    assert all(node.x + drawing.box[0] <= drawing.width for node in drawing.nodes)
    assert all(node.y + drawing.box[1] <= drawing.height for node in drawing.nodes)


def test_a_page_draws_no_more_than_a_browser_shows() -> None:
    links = [Link(f"c{number}", f"t{number}", True) for number in range(1_000)]
    found = {
        link.connector: connector
        for link, connector in zip(links, summaries({link.connector: {} for link in links}), strict=True)
    }
    assert len(drawn(links, found).nodes) == MOST_NODES
    assert drawn([], {}).nodes == []


def test_without_sources_the_topics_are_on_the_left_where_a_phone_begins() -> None:
    found = {connector.name: connector for connector in summaries(VIEWS)}
    drawing = drawn([link for link in LINKS if not link.writes], found)
    left = min(drawing.nodes, key=lambda node: node.x)
    assert left.connector is None
    assert left.x + drawing.box[0] < 390
    assert drawing.width == max(node.x for node in drawing.nodes) + drawing.box[0] + left.x
    assert all(node.connector is not None for node in drawing.nodes if node.name in ("lake", "search"))


def test_a_short_column_is_divided_over_the_height_of_the_longest() -> None:
    links = [Link(f"c{number}", f"t{number // 3}", False) for number in range(6)]
    nodes = drawn(links, {each.name: each for each in summaries({link.connector: {} for link in links})}).nodes
    at = {node.name: node.y for node in nodes}
    assert (at["t0"], at["t1"]) == (at["c1"], at["c4"]), "in the middle of those that it is connected to"


def test_long_names_that_begin_alike_are_told_apart() -> None:
    links = [Link(f"team.orders-of-a-rather-long-name-{number}", "orders", False) for number in (1, 2)]
    found = {each.name: each for each in summaries({link.connector: {} for link in links})}
    shown = [node.short for node in drawn(links, found).nodes if node.connector is not None]
    assert shown == ["team.orders-of…her-long-name-1", "team.orders-of…her-long-name-2"]
    assert [node.short for node in drawn(links, found).nodes if node.connector is None] == ["orders"]
