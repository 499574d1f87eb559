"""Values are parsed, formatted and refused as by Kafka's ``ConfigDef``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from connect.config import (
    ConfigType,
    Password,
    Validator,
    all_of,
    connector_name,
    format_value,
    known_class,
    parse_value,
)
from connect.errors import ConfigError

VECTORS = json.loads((Path(__file__).parent / "data/vectors/config_parse.json").read_text())
RULES: dict[str, Validator] = {"CLASS": known_class(lambda name: name == "java.lang.String")}


def read(case: dict[str, Any]) -> Any:
    value = parse_value("k", case["input"], ConfigType(case["type"]))
    RULES.get(case["type"], all_of())("k", value)
    return value


def as_vector(value: Any) -> Any:
    match value:
        case Password():
            return str(value)
        case tuple():
            return list(value)
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return value


def name_of(case: dict[str, Any]) -> str:
    return f"{case.get('type', 'name')}:{case['input']!r}"


@pytest.mark.parametrize("case", [c for c in VECTORS["cases"] if "error" not in c], ids=name_of)
def test_accepts(case: dict[str, Any]) -> None:
    value = read(case)
    # A class stays a name here: it is imported by whoever uses it, there is no "class x" to show.
    expected = case["as_string"] if case["type"] == "CLASS" else case["parsed"]
    assert as_vector(value) == expected
    assert format_value(value) == case["as_string"]


@pytest.mark.parametrize("case", [c for c in VECTORS["cases"] if "error" in c], ids=name_of)
def test_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        read(case)
    assert str(refused.value) == case["message"]


@pytest.mark.parametrize("case", VECTORS["validators"]["nonEmptyStringWithoutControlChars"], ids=name_of)
def test_connector_name(case: dict[str, Any]) -> None:
    if "ok" in case:
        connector_name("name", case["input"])
        return
    with pytest.raises(ConfigError) as refused:
        connector_name("name", case["input"])
    assert str(refused.value) == case["error"]
