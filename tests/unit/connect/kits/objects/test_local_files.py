"""A local folder is a store of objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import RetriableError
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.store import ObjectStore, open_store
from connect.kits.objects.uploads import UploadSettings, begin_upload
from equipment.stores.objects import ObjectContract


class TestLocalFiles(ObjectContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return open_store(parse_location(str(tmp_path / "lake")), ObjectOptions.parse({}))

    def test_links_are_listed_where_they_are_files(self, store: ObjectStore, tmp_path: Path) -> None:
        store.create("f/a", b"-")
        (tmp_path / "lake/f/link").symlink_to(tmp_path / "lake/f/a")
        (tmp_path / "lake/f/around").symlink_to(tmp_path / "lake/f")
        (tmp_path / "lake/f/nowhere").symlink_to(tmp_path / "gone")
        assert list(store.below("f")) == [("f/a", 1), ("f/link", 1)]

    def test_a_frozen_task_whose_parts_were_removed_spoils_no_file(self, store: ObjectStore) -> None:
        frozen = begin_upload(store, "f", UploadSettings(staging="staging"))
        frozen.send(b"first ")
        store.remove_tree("staging")
        store.create("f", b"first second")
        with pytest.raises(RetriableError):
            frozen.finish(b"second", {})
        assert store.read("f") == b"first second"
