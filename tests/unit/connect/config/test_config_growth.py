"""However hostile, twice the text of a configuration takes some twice the time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from connect.config import HIGH, Config, option
from connect.config.parsing import parse_value
from connect.config.properties import parse_properties
from connect.config.types import ConfigType
from connect.errors import ConfigError
from connect.providers import has_reference, resolve_references
from equipment.growth import assert_grows_evenly


class ListConfig(Config):
    """A list."""

    items: tuple[str, ...] = option(default=(), importance=HIGH, doc="The items.")


def hostile(unit: str, before: str = "", after: str = "") -> Any:
    return lambda size: before + unit * size + after


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        hostile(":", "${"),
        hostile("${"),
        hostile("${}"),
        hostile("${", after="}"),
        hostile("$"),
        hostile("${a:b:c}"),
        hostile(":", "${a", "}"),
        hostile("${:}}"),
    ],
)
def test_references(make: Any) -> None:
    assert_grows_evenly(has_reference, make, 100_000)
    assert_grows_evenly(lambda text: resolve_references({"a": text}, {}), make, 20_000)


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        hostile("a=b\\\n"),
        hostile("a\\\n", "k="),
        hostile("\\\n"),
        hostile("\\"),
        hostile(" ", "a", "b"),
        hostile("\\u0041", "a="),
        hostile("=:"),
        hostile("\r"),
    ],
)
def test_properties_files(make: Any) -> None:
    assert_grows_evenly(parse_properties, make, 40_000)


@pytest.mark.growth
@pytest.mark.parametrize("config_type", ConfigType)
@pytest.mark.parametrize(
    "make",
    [
        hostile(" ", "a", "b"),
        hostile("1"),
        hostile("0", after="x"),
        hostile("1", "0x", "p"),
        hostile(",  "),
        hostile("."),
    ],
)
def test_values(config_type: ConfigType, make: Any) -> None:
    def parse(text: str) -> None:
        with suppress(ConfigError):
            parse_value("k", text, config_type)

    assert_grows_evenly(parse, make, 40_000)


def test_a_list_keeps_its_items() -> None:
    assert ListConfig.parse({"items": " a ,\tb,, c d ,"}).items == ("a", "b", "", "c d", "")
