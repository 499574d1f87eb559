"""The options of the transformations and predicates are those of Kafka Connect, with what there is beyond them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.config import parse_value
from equipment.vectors import DATA
from parity.test_transforms import PLUGINS

FOLDER = DATA / "configdefs"
# Field paths are taken in all transformations that read or change fields, not in ExtractField alone.
BEYOND = {
    name: {"field.syntax.version"}
    for name in ("Cast", "HeaderFrom", "MaskField", "ReplaceField", "TimestampConverter", "ValueToKey")
}
DEFINITIONS = [path for kind in ("smt", "predicate") for path in sorted(FOLDER.glob(f"{kind}_*.json"))]


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_options(path: Any) -> None:
    expected = json.loads(path.read_text())
    name = next(name for name in PLUGINS if name.lower() == path.stem.partition("_")[2])
    keys = {key.name: key for key in PLUGINS[name].config_class.definitions()}
    assert set(keys) - set(expected) == BEYOND.get(name, set())
    for option, definition in expected.items():
        key = keys[option]
        assert (key.type, key.importance) == (definition["type"], definition["importance"])
        assert key.required == definition.get("required", False)
        assert key.documentation
        if not key.required:
            assert key.default == parse_value(option, definition["default"], key.type)
        if definition["validator"]:
            assert str(key.validator) == definition["validator"]
