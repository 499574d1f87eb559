"""The config providers for files, folders and the environment."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from connect.errors import ConfigError, ConnectError
from connect.providers import (
    ConfigProvider,
    DirectoryConfigProvider,
    EnvVarConfigProvider,
    FileConfigProvider,
    resolve_references,
)

SECRET = "tr0ub4dor"


def configured(provider: ConfigProvider, **params: str) -> ConfigProvider:
    provider.configure({name.replace("_", "."): value for name, value in params.items()})
    return provider


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "secrets" / "db.properties"
    file.parent.mkdir()
    file.write_text(f"user=lücy\npassword : {SECRET}\nempty=\n", encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as Kubernetes mounts a secret: the files are links through ``..data`` to those of one version."""
    version = tmp_path / "mount" / "..2024_01_01"
    version.mkdir(parents=True)
    (version / "password").write_text(f"{SECRET}\n")
    (version / "user").write_text("lücy", encoding="utf-8")
    (version.parent / "..data").symlink_to(version.name)
    for name in ("password", "user"):
        (version.parent / name).symlink_to(f"..data/{name}")
    return version.parent


class TestFile:
    def test_gives_the_properties_asked_for(self, properties: Path) -> None:
        provider = configured(FileConfigProvider())
        data = provider.get(str(properties), {"password", "empty", "absent"})
        assert data.values == {"password": SECRET, "empty": ""}
        assert data.ttl_ms is None

    def test_gives_all_properties(self, properties: Path) -> None:
        values = configured(FileConfigProvider()).get(str(properties)).values
        assert values == {"user": "lücy", "password": SECRET, "empty": ""}

    def test_reads_the_file_again_each_time(self, properties: Path) -> None:
        provider = configured(FileConfigProvider())
        provider.get(str(properties))
        properties.write_text("password=new")
        assert provider.get(str(properties)).values == {"password": "new"}

    def test_a_reference_without_a_path_stays_as_it_is(self) -> None:
        provider = configured(FileConfigProvider())
        resolved = resolve_references({"key": "${file:password}"}, {"file": provider})
        assert resolved.values == {"key": "${file:password}"}

    def test_a_missing_file_is_told_with_its_path(self, tmp_path: Path) -> None:
        missing = str(tmp_path / "missing.properties")
        with pytest.raises(ConnectError, match=r"No such file.*Correct") as raised:
            configured(FileConfigProvider()).get(missing)
        assert missing in str(raised.value)

    @pytest.mark.parametrize("content", [f"password={SECRET}\\u12".encode(), SECRET.encode() + b"=\xff" * 9])
    def test_a_malformed_file_is_told_without_its_values(self, properties: Path, content: bytes) -> None:
        properties.write_bytes(content)
        with pytest.raises(ConnectError) as raised:
            configured(FileConfigProvider()).get(str(properties))
        told = "".join(traceback.format_exception(raised.value))
        assert str(properties) in str(raised.value)
        assert SECRET not in told


class TestDirectory:
    def test_gives_the_files_asked_for_whole(self, folder: Path) -> None:
        data = configured(DirectoryConfigProvider()).get(str(folder), {"password", "absent"})
        assert data.values == {"password": f"{SECRET}\n"}
        assert data.ttl_ms is None

    def test_gives_all_regular_files(self, folder: Path) -> None:
        assert configured(DirectoryConfigProvider()).get(str(folder)).values.keys() == {"password", "user"}

    def test_follows_a_new_version_of_a_mount(self, folder: Path) -> None:
        provider = configured(DirectoryConfigProvider(), allowed_paths=str(folder))
        newer = folder / "..2025_01_01"
        newer.mkdir()
        (newer / "password").write_text("new")
        (folder / "..data").unlink()
        (folder / "..data").symlink_to(newer.name)
        assert provider.get(str(folder), {"password"}).values == {"password": "new"}

    @pytest.mark.parametrize("key", ["../outside", "/etc/passwd", "..", ".", "", "sub/file"])
    def test_a_key_cannot_lead_out_of_the_folder(self, folder: Path, key: str) -> None:
        (folder.parent / "outside").write_text(SECRET)
        (folder / "sub").mkdir()
        (folder / "sub" / "file").write_text(SECRET)
        assert configured(DirectoryConfigProvider()).get(str(folder), {key}).values == {}

    @pytest.mark.parametrize("name", ["missing", "user"])
    def test_what_is_no_folder_is_told_with_its_path(self, folder: Path, name: str) -> None:
        with pytest.raises(ConnectError, match=f"Could not list directory .*{name}.*correct the reference"):
            configured(DirectoryConfigProvider()).get(str(folder / name), {"key"})

    def test_a_file_that_is_no_text_is_told_without_what_it_holds(self, folder: Path) -> None:
        (folder / "key").write_bytes(SECRET.encode() + b"\xff")
        with pytest.raises(ConnectError, match=r"key is not UTF-8") as raised:
            configured(DirectoryConfigProvider()).get(str(folder))
        assert SECRET not in "".join(traceback.format_exception(raised.value))


PathProvider = Callable[[], ConfigProvider]


@pytest.mark.parametrize("provider", [FileConfigProvider, DirectoryConfigProvider])
class TestAllowedPaths:
    @pytest.mark.parametrize("given", ["secrets", "/no/such/folder/anywhere"])
    def test_an_allowed_path_must_be_absolute_and_exist(self, provider: PathProvider, given: str) -> None:
        with pytest.raises(ConfigError, match=r"allowed\.paths") as raised:
            configured(provider(), allowed_paths=f"/,{given}")
        assert raised.value.key == "allowed.paths"

    def test_what_is_below_is_allowed(self, provider: PathProvider, tmp_path: Path) -> None:
        place = _secret_at(tmp_path / "allowed" / "deeper", provider)
        assert configured(provider(), allowed_paths=f"/proc,{tmp_path / 'allowed'}").get(place, {"password"}).values

    def test_what_is_beside_is_refused(self, provider: PathProvider, tmp_path: Path) -> None:
        (tmp_path / "allowed").mkdir()
        place = _secret_at(tmp_path / "allowed-not", provider)
        _refuses(configured(provider(), allowed_paths=str(tmp_path / "allowed")), place)

    def test_dots_do_not_lead_out(self, provider: PathProvider, tmp_path: Path) -> None:
        (tmp_path / "allowed").mkdir()
        place = _secret_at(tmp_path / "other", provider)
        dotted = place.replace("/other", "/allowed/../other")
        _refuses(configured(provider(), allowed_paths=str(tmp_path / "allowed")), dotted)

    def test_a_link_does_not_lead_out(self, provider: PathProvider, tmp_path: Path) -> None:
        (tmp_path / "allowed").mkdir()
        place = _secret_at(tmp_path / "other", provider)
        (tmp_path / "allowed" / "link").symlink_to(tmp_path / "other")
        linked = place.replace("/other", "/allowed/link")
        _refuses(configured(provider(), allowed_paths=str(tmp_path / "allowed")), linked)

    def test_an_allowed_path_may_be_a_link_itself(self, provider: PathProvider, tmp_path: Path) -> None:
        place = _secret_at(tmp_path / "real", provider)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        allowing = configured(provider(), allowed_paths=str(tmp_path / "link"))
        assert allowing.get(place.replace("/real", "/link"), {"password"}).values

    def test_a_path_with_a_null_byte_is_told(self, provider: PathProvider) -> None:
        with pytest.raises(ConnectError, match="Correct the reference"):
            configured(provider()).get("/etc/\0", {"key"})

    def test_ttl_goes_with_the_values(self, provider: PathProvider, tmp_path: Path) -> None:
        place = _secret_at(tmp_path / "real", provider)
        assert configured(provider(), ttl_ms="60000").get(place, {"password"}).ttl_ms == 60_000
        with pytest.raises(ConfigError, match=r"ttl\.ms"):
            configured(provider(), ttl_ms="-1")


class TestWithoutAllowedPaths:
    @pytest.mark.parametrize(
        "path",
        ["/proc/self/environ", "/proc/self/status", "/proc/self/../1/environ", "/sys/kernel/notes", "/dev/../proc/1"],
    )
    def test_the_system_is_refused(self, path: str) -> None:
        with pytest.raises(ConnectError, match="belongs to the system"):
            configured(FileConfigProvider()).get(path, {"HOME"})

    def test_a_folder_of_the_system_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/proc/self")
        for folder in ("/proc/self", "/proc", "/sys", str(tmp_path / "link")):
            with pytest.raises(ConnectError, match="belongs to the system"):
                configured(DirectoryConfigProvider()).get(folder, {"environ"})

    @pytest.fixture
    def own(self, tmp_path: Path) -> Path:
        file = tmp_path / "worker.properties"
        file.write_text(f"password={SECRET}")
        (tmp_path / "link").symlink_to(file)
        (tmp_path / "hard").hardlink_to(file)
        (tmp_path / "folder").mkdir()
        (tmp_path / "other").write_text("password=other")
        return file

    @pytest.mark.parametrize("path", ["worker.properties", "link", "hard", "folder/../worker.properties"])
    def test_a_file_of_the_worker_is_refused_by_any_way(self, own: Path, path: str) -> None:
        provider = configured(FileConfigProvider([own]))
        with pytest.raises(ConnectError, match=r"belongs to the worker itself.*allowed\.paths"):
            provider.get(f"{own.parent}/{path}", {"password"})
        assert provider.get(f"{own.parent}/other", {"password"}).values == {"password": "other"}

    @pytest.mark.parametrize("key", ["worker.properties", "link", "hard"])
    def test_a_file_of_the_worker_in_a_folder_is_refused(self, own: Path, key: str) -> None:
        provider = configured(DirectoryConfigProvider([own]))
        with pytest.raises(ConnectError, match="belongs to the worker itself"):
            provider.get(str(own.parent), {key})
        assert provider.get(str(own.parent), {"other"}).values == {"other": "password=other"}

    def test_who_allows_a_folder_allows_what_is_in_it(self, own: Path) -> None:
        provider = configured(FileConfigProvider([own]), allowed_paths=str(own.parent))
        assert provider.get(str(own), {"password"}).values == {"password": SECRET}


def test_a_link_in_an_allowed_folder_does_not_lead_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "password").symlink_to(tmp_path / "secret")
    provider = configured(DirectoryConfigProvider(), allowed_paths=str(tmp_path / "allowed"))
    _refuses(provider, str(tmp_path / "allowed"))


class TestEnvironment:
    ENVIRON: ClassVar = {"DB_PASSWORD": SECRET, "DB_USER": "lucy", "HOME": "/root"}

    def test_gives_the_variables_asked_for(self) -> None:
        data = configured(EnvVarConfigProvider(self.ENVIRON)).get("", {"DB_USER", "ABSENT"})
        assert data.values == {"DB_USER": "lucy"}
        assert data.ttl_ms is None

    @pytest.mark.parametrize("reference", ["${env:DB_PASSWORD}", "${env::DB_PASSWORD}"])
    def test_is_referred_to_without_a_path(self, reference: str) -> None:
        provider = configured(EnvVarConfigProvider(self.ENVIRON))
        assert resolve_references({"key": reference}, {"env": provider}).values == {"key": SECRET}

    def test_a_path_is_refused(self) -> None:
        with pytest.raises(ConnectError, match="Path is not supported for EnvVarConfigProvider, invalid value 'p'"):
            configured(EnvVarConfigProvider(self.ENVIRON)).get("p", {"DB_USER"})

    def test_only_names_that_match_whole_are_seen(self) -> None:
        provider = configured(EnvVarConfigProvider(self.ENVIRON), allowlist_pattern="DB_U.*|OME")
        assert provider.get("").values == {"DB_USER": "lucy"}

    def test_a_wrong_pattern_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"allowlist\.pattern"):
            configured(EnvVarConfigProvider(self.ENVIRON), allowlist_pattern="(")

    def test_reads_the_environment_of_the_process(self) -> None:
        assert configured(EnvVarConfigProvider()).get("", {"PATH"}).values.keys() == {"PATH"}

    def test_ttl_goes_with_the_values(self) -> None:
        assert configured(EnvVarConfigProvider(self.ENVIRON), ttl_ms="5").get("", {"HOME"}).ttl_ms == 5


def _secret_at(folder: Path, provider: PathProvider) -> str:
    """Put a secret there as the provider reads it; the path to refer to."""
    folder.mkdir(parents=True)
    (folder / "password").write_text(f"password={SECRET}")
    return str(folder / "password" if provider is FileConfigProvider else folder)


def _refuses(provider: ConfigProvider, path: str) -> None:
    with pytest.raises(ConnectError, match="is not allowed to be accessed") as raised:
        provider.get(path, {"password"})
    assert path in str(raised.value)
    assert SECRET not in str(raised.value)
