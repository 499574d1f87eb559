"""A local folder is a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.spark.stores.local import LocalStore
from connectors.spark.stores.store import Store
from equipment.stores.contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> LocalStore:
        return LocalStore(tmp_path / "lake")

    def stage(self, store: Store, folder: str, name: str, data: bytes, attempt: int = 0) -> None:
        store.create(f"{folder}/{name}", data)
