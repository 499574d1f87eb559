"""Every header converter that comes with Kafka Connect is known by its Java class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from connect.internals.chain.converters import converter_plugin
from connect.internals.plugins import PluginRegistry

_CALLS: Final = Path(__file__).parent / "data/rest/distributed.jsonl"


def java_classes() -> list[str]:
    calls = map(json.loads, _CALLS.read_text().splitlines())
    [body] = (call["response"] for call in calls if call["name"] == "plugins_all")
    listed = json.loads(body) if isinstance(body, str) else body
    return [each["class"] for each in listed if each["type"] == "header_converter"]


@pytest.mark.parametrize("name", java_classes())
def test_a_header_converter_is_found_and_gives_back_what_it_wrote(name: str) -> None:
    converter = converter_plugin(PluginRegistry.discover(), {"header.converter": name}, "header")
    assert converter.to_connect_header("t", "h", converter.from_connect_header("t", "h", None, None)).value is None
