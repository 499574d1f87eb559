"""What the embedded schema registry is made of, without starting it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from connect.errors import ConfigError, ConnectError
from worker.embedded.ports import any_port, is_free
from worker.embedded.registry.application import registry_archive, unpacked
from worker.embedded.registry.settings import (
    RegistryServerConfig,
    RegistryState,
    Storage,
    registry_folder,
    system_properties,
)


def archive(folder: Path, *names: str) -> Path:
    path = folder / "app.tar.gz"
    with tarfile.open(path, "w:gz") as content:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(name)
            content.addfile(entry, io.BytesIO(name.encode()))
    return path


def test_the_archive_is_pinned_with_its_extension() -> None:
    pinned = registry_archive()
    assert pinned.coordinates == f"io.apicurio:apicurio-registry-app:{pinned.version}:all@tar.gz"
    assert pinned.file_name == f"io.apicurio_apicurio-registry-app-{pinned.version}-all.tar.gz"


def test_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    path, folder = archive(tmp_path, "quarkus-run.jar", "lib/a.jar"), tmp_path / "applications" / "app"
    assert (unpacked(path, folder) / "lib" / "a.jar").read_text() == "lib/a.jar"
    path.unlink()
    assert unpacked(path, folder) == folder


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_an_archive_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "applications" / "app"
    try:
        unpacked(archive(tmp_path, name), folder)
    except ConnectError as error:
        assert "Cannot unpack" in str(error)
        assert not folder.exists()
    assert not (tmp_path / "applications" / "outside").exists()
    assert not Path("/outside").exists()


def test_a_damaged_archive_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "app.tar.gz"
    path.write_bytes(archive(tmp_path, "a" * 90).read_bytes()[:60])
    with pytest.raises(ConnectError, match="Cannot unpack"):
        unpacked(path, tmp_path / "applications" / "app")
    assert [each.name for each in (tmp_path / "applications").iterdir()] == [".lock"]


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    arguments = system_properties(RegistryServerConfig(), 1, 2, tmp_path)
    assert "-Dquarkus.http.host=127.0.0.1" in arguments
    assert "-Dquarkus.management.host=127.0.0.1" in arguments
    assert f"-Dapicurio.datasource.url=jdbc:h2:file:{tmp_path}/registry;WRITE_DELAY=0" in arguments
    in_memory = system_properties(RegistryServerConfig(storage=Storage.MEMORY), 1, 2, tmp_path)
    assert not any(str(tmp_path) in argument for argument in in_memory)


@pytest.mark.parametrize(("key", "value"), [("heap", "lots"), ("port", 70000)])
def test_settings_that_are_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        RegistryServerConfig(**{key: value})  # type: ignore[arg-type]


def test_the_state_reads_back_as_written(tmp_path: Path) -> None:
    folder = registry_folder(tmp_path)
    assert folder.read_state() is None
    state = RegistryState(7, 8081, "3.3.3", Storage.MEMORY).as_explicit()
    folder.write_state(state)
    assert folder.read_state() == state
    assert state.as_stopped().explicit is False


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": 1, "storage": "tape"}'])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "registry.json").write_text(text, encoding="utf-8")
    assert registry_folder(tmp_path).read_state() is None


def test_any_port_is_free_and_not_the_one_that_is_taken() -> None:
    first = any_port(taken=0)
    assert is_free(first)
    assert any_port(taken=first) != first
