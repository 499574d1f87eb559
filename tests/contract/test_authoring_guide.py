"""The examples in the guide for plugin authors are those that are tested here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from counter import CounterConnector
from upload import UploadConfig

import connect.testing
from connect.config import to_markdown
from connect.internals.plugins import PluginKind
from connect.testing import StoredOffsets, run_source

PLUGINS = Path(__file__).parent / "plugins"
GUIDE = (Path(__file__).parents[2] / "docs" / "plugin-authoring.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", sorted(PLUGINS.glob("*.py")), ids=lambda module: module.name)
def test_an_example_is_in_the_guide(module: Path) -> None:
    assert f"```python\n{module.read_text()}```" in GUIDE, f"Copy {module.name} into the guide."


def test_examples_are_python() -> None:
    for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        compile(block, "plugin-authoring.md", "exec")


def test_lists_of_plugins_are_well_formed() -> None:
    kinds = {kind.value for kind in PluginKind}
    for block in re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL):
        document: dict[str, Any] = tomllib.loads(block)
        assert document.keys() <= kinds | {"project", "tool"}


def test_kits_are_there() -> None:
    named = set(re.findall(r"`(\w+Tests)`", GUIDE))
    assert named == {name for name in connect.testing.__all__ if name.endswith("Tests")} - {"PluginTests"}


def test_goes_on_where_it_stopped() -> None:
    offsets, props = StoredOffsets(), {"topic": "numbers", "seconds": "0.001"}
    run_source(CounterConnector, props, offsets=offsets, until=lambda records: len(records) == 3)
    (record,) = run_source(CounterConnector, props, offsets=offsets, until=lambda records: len(records) == 1)
    assert record.value == 4


@pytest.mark.parametrize(
    ("props", "wrong"),
    [
        ({"folder": "/a"}, {}),
        ({"folder": "/a", "user": "u", "password": "p"}, {}),
        ({"folder": "a"}, {"folder": "Invalid value a for configuration folder: Path must be absolute"}),
        (
            {"folder": "a", "user": "u"},
            {
                "folder": "Invalid value a for configuration folder: Path must be absolute",
                "user": "Set user and password together, or neither.",
                "password": "Set user and password together, or neither.",
            },
        ),
    ],
)
def test_the_rules_of_options_are_told_together(props: dict[str, str], wrong: dict[str, str]) -> None:
    found = {value.name: error for value in UploadConfig.validate(props) for error in value.errors}
    assert found == wrong


def test_the_rule_of_an_option_is_in_its_description() -> None:
    assert "- Valid values: absolute path" in to_markdown(UploadConfig)
