"""Every plugin that ``plugins.toml`` lists is there and documented, and no name is taken twice."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest
from codebase import ROOT

from connect.internals.plugins import PluginEntry, PluginRegistry, load_class, read_entries
from connect.sink import SinkConnector
from connect.source import SourceConnector

ENTRIES: Final = read_entries(ROOT / "plugins.toml", folder=None)
KINDS: Final = {"source": SourceConnector, "sink": SinkConnector}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.class_name)
def test_a_listed_plugin_can_be_used(entry: PluginEntry) -> None:
    plugin = load_class(entry)
    assert plugin.__doc__, f"{entry.class_name} needs a docstring: it is shown to users."
    if entry.type is not None:
        assert issubclass(plugin, KINDS[entry.type]), f"{entry.class_name} is listed as a {entry.type} and is none."


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.class_name)
def test_a_plugin_is_found_by_its_class_and_by_its_aliases(entry: PluginEntry) -> None:
    registry = PluginRegistry(ENTRIES)
    for name in (entry.class_name, entry.simple_name, *entry.aliases):
        assert registry.find(entry.kind, name) == entry


def test_no_plugin_is_listed_twice() -> None:
    counts = Counter((entry.kind, entry.class_name) for entry in ENTRIES)
    twice = [f"[[{kind.value}]] {name}" for (kind, name), count in counts.items() if count > 1]
    assert not twice, f"plugins.toml lists these more than once: {', '.join(twice)}"
