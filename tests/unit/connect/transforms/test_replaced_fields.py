"""Fields are dropped and kept by the names that the keys have today, and had before Kafka 2.7."""

from __future__ import annotations

from typing import Any

import pytest

from connect.errors import ConfigError
from connect.transforms.replace_field import ReplaceField

PERSON = {"name": "Ann", "city": "Rome", "secret": "s"}


@pytest.mark.parametrize(
    ("props", "kept"),
    [
        ({"blacklist": "secret"}, ["name", "city"]),
        ({"whitelist": "name"}, ["name"]),
        ({"whitelist": "name,secret", "blacklist": "secret"}, ["name"]),
        ({"whitelist": "name,secret", "exclude": "secret"}, ["name"]),
        ({"blacklist": "city", "exclude": "secret"}, ["name", "city"]),
        ({"blacklist": "secret", "exclude": ""}, ["name", "city"]),
        ({"whitelist": "name", "include": "city"}, ["city"]),
    ],
)
def test_old_names_count_where_the_new_ones_are_not_set(record: Any, props: dict[str, str], kept: list[str]) -> None:
    for variant in (ReplaceField.Value, ReplaceField.Key):
        changed = variant.configured(props).apply(record(dict(PERSON), key=dict(PERSON)))
        assert list(changed.value if variant is ReplaceField.Value else changed.key) == kept


def test_a_mistake_in_an_old_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="exclude"):
        ReplaceField.Value.configured({"blacklist": "a,a"})
