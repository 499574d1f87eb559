"""The page on client settings says what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS
from connect.internals.kafka.settings.reference import client_properties_page

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "client-properties.md"


@pytest.mark.parametrize("kind", list(ClientKind))
def test_every_key_is_on_the_page(kind: ClientKind) -> None:
    page = client_properties_page()
    assert [key for key in CLIENT_KEYS[kind] if f"| `{key}` |" not in page] == []


def test_the_page_in_the_documentation_is_fresh() -> None:
    assert PAGE.read_text() == client_properties_page(), (
        "write it again: python -c 'from connect.internals.kafka.settings.reference import client_properties_page; "
        f'print(client_properties_page(), end="")\' > {PAGE}'
    )
