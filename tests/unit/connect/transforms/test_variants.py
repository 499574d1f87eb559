"""The variants for the key and for the value, and what they are made of."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from connect.config import HIGH, Config, option
from connect.data import Schema
from connect.errors import PluginError
from connect.transforms import Change, ValueTransformation
from connect.transforms.cast import Cast, CastConfig
from connect.transforms.fields.key_or_value import SchemaCache


class SuffixConfig(Config):
    suffix: str = option(importance=HIGH, doc="What to append.")


class Suffix(ValueTransformation[SuffixConfig]):
    """Appends a suffix to strings."""

    def change(self, schema: Schema | None) -> Change:
        return Change(schema, lambda value: value + self.config.suffix)


def test_a_transformation_of_ones_own_has_both_variants(record: Any) -> None:
    given = record("v", Schema.string(), key="k", key_schema=Schema.string())
    on_key = Suffix.Key.configured({"suffix": "!"}).apply(given)
    on_value = Suffix.Value.configured({"suffix": "!"}).apply(given)
    assert (on_key.key, on_key.value) == ("k!", "v")
    assert (on_value.key, on_value.value) == ("k", "v!")
    assert (given.key, given.value) == ("k", "v")


def test_variants_know_their_names_and_their_config() -> None:
    assert Cast.Value.__qualname__ == "Cast.Value"
    assert Cast.Value.__module__ == "connect.transforms.cast"
    assert Cast.Value.config_class is CastConfig
    assert pickle.loads(pickle.dumps(Cast.Key)) is Cast.Key
    assert issubclass(Cast.Key, Cast)


def test_a_transformation_without_a_variant_says_what_to_use() -> None:
    with pytest.raises(PluginError, match=r"use Cast\$Key or Cast\$Value"):
        Cast.configured({"spec": "int8"})


def test_the_cache_asks_once_a_schema_and_forgets_the_oldest() -> None:
    asked: list[Schema | None] = []
    cache = SchemaCache(lambda schema: asked.append(schema) or len(asked), limit=2)
    first, second, third = Schema.int8(), Schema.int16(), Schema.int32()
    assert [cache(first), cache(first), cache(second), cache(None), cache(second)] == [1, 1, 2, 3, 2]
    assert cache(third) == 4
    assert cache(first) == 5
