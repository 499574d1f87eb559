"""No key of a configuration that our docs and examples show is told of as one that has no effect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from connect.config import parse_properties
from connect.errors import ConnectError
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.connector_keys import key_warnings
from worker.security.redaction import Redaction

_ROOT: Final = Path(__file__).parents[4]
_WORKER: Final = {
    "bootstrap.servers": "unused:1",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
}
_BLOCK: Final = re.compile(r"^```(json|properties)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_UNKNOWN: Final = "has no such key"


def _configurations() -> Iterator[tuple[str, dict[str, str]]]:
    for page in sorted((_ROOT / "docs").rglob("*.md")):
        for number, (kind, text) in enumerate(_BLOCK.findall(page.read_text())):
            if "connector.class" in text:
                yield f"{page.stem}-{number}", _read(kind, text)
    for file in sorted((_ROOT / "examples").rglob("*.properties")):
        if "connector.class" in (text := file.read_text()):
            yield f"{file.parent.name}-{file.stem}", _read("properties", text)


def _read(kind: str, text: str) -> dict[str, str]:
    if kind == "properties":
        return dict(parse_properties(text))
    try:
        found = json.loads(text)
    except ValueError:
        # A part of a configuration.
        return {}
    return {key: str(value) for key, value in found.get("config", found).items()} if isinstance(found, dict) else {}


@pytest.mark.parametrize(("place", "given"), [pytest.param(*each, id=each[0]) for each in _configurations()])
def test_it_shows_no_key_without_effect(place: str, given: dict[str, str]) -> None:
    if "connector.class" not in given:
        return
    try:
        told = list(key_warnings(Assembly.resolve(_WORKER, {"name": place, **given}, Redaction())))
    except ConnectError:
        # A connector that the page writes or that others have.
        return
    assert [warning for warning in told if _UNKNOWN in warning] == []
