"""The table of all connectors in docs/connectors/README.md agrees with plugins.toml and pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/connectors/README.md"


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    names: tuple[str, ...]
    page: str
    kind: str
    cells: tuple[str, ...]
    """The guarantee, what it needs and what it was tested with."""
    aliases: tuple[str, ...]


def table() -> list[Row]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| [")]
    rows = []
    for line in lines:
        first, direction, *cells, aliases = (cell.strip() for cell in line.strip("|").split("|"))
        link = re.fullmatch(r"\[([\w, ]+)\]\(([\w./-]+)(?:#[\w-]+)?\)", first)
        assert link is not None, first
        names = tuple(name.removesuffix("Connector") for name in link[1].split(", "))
        kind = direction.split(": ")[0]
        rows.append(Row(names, link[2], kind, tuple(cells), tuple(re.findall(r"`([\w.]+)`", aliases))))
    return rows


def test_each_connector_is_in_the_table_with_the_java_classes_it_stands_for() -> None:
    plugins = tomllib.loads((ROOT / "plugins.toml").read_text())["connector"]
    expected = {
        plugin["class"].rpartition(".")[2].removesuffix("Connector"): (plugin["type"], plugin.get("aliases", []))
        for plugin in plugins
    }
    rows = table()
    assert sorted(name for row in rows for name in row.names) == sorted(expected)
    for row in rows:
        assert {expected[name][0] for name in row.names} == {row.kind}, row.names
        assert list(row.aliases) == [alias for name in row.names for alias in expected[name][1]], row.names


def test_each_row_says_everything_and_links_to_a_page() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for row in table():
        assert (PAGE.parent / row.page).is_file(), row.page
        guarantee, needs, tested = row.cells
        assert guarantee, row.names
        assert needs, row.names
        assert tested, row.names
        assert set(re.findall(r"`\[([\w-]+)\]`", needs)) <= extras.keys(), row.names
