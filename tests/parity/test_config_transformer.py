"""References to config providers are replaced as by Kafka's ``ConfigTransformer``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.providers import ConfigData, ConfigProvider, resolve_references

VECTORS = json.loads((Path(__file__).parent / "data/vectors/config_transformer.json").read_text())


class VectorProvider(ConfigProvider):
    """Has the data of the vectors; what is at path ``p`` holds for a second."""

    def configure(self, props: Mapping[str, str]) -> None:
        raise AssertionError("The vectors configure nothing")

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        data = VECTORS["provider_data"].get(path, {})
        wanted = data if keys is None else {key: data[key] for key in keys if key in data}
        return ConfigData(wanted, ttl_ms=1000 if path == "p" else None)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["input"])
def test_resolves(case: dict[str, Any]) -> None:
    resolved = resolve_references({"k": case["input"]}, {"test": VectorProvider()})
    assert resolved.values == {"k": case["output"]}
    assert {path: ttl for (_, path), ttl in resolved.ttls_ms.items()} == case["ttls"]
    assert resolved.secret_keys == ({"k"} if case["input"] != case["output"] else frozenset())
