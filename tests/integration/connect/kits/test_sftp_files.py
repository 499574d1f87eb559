"""A folder of an SFTP server is a store of objects: with asyncssh, and with OpenSSH."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostRules
from connect.kits.files.systems.address import Address, parse_address
from connect.kits.files.systems.sftp import SftpAccount, SftpSystem
from connect.kits.objects.sftp import SftpFiles
from connect.kits.objects.uploads import UploadSettings, begin_upload
from equipment.servers.file_servers import FileServer, SftpServer, running_asyncssh, running_openssh
from equipment.stores.objects import ObjectContract, unique_prefix

MIB = 1 << 20


def account_of(server: FileServer) -> SftpAccount:
    props = server.props
    return SftpAccount(
        props["file.system.username"],
        props.get("file.system.password"),
        private_key_path=props.get("sftp.private.key.path"),
        host_key=props["sftp.host.key"],
    )


def opened(server: FileServer, path: str) -> SftpFiles:
    address = parse_address("path", server.url)
    return SftpFiles(address.at(f"{address.path.rstrip('/')}/{path}"), account_of(server), HostRules.of((), ()))


@pytest.fixture
def sftp(tmp_path: Path) -> Iterator[SftpServer]:
    (tmp_path / "files").mkdir()
    with running_asyncssh(tmp_path / "files") as server:
        yield server


@pytest.fixture
def store(sftp: SftpServer) -> Iterator[SftpFiles]:
    with closing(opened(sftp.server, "lake")) as found:
        yield found


@pytest.fixture(scope="module")
def openssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    try:
        with running_openssh(tmp_path_factory.mktemp("openssh")) as server:
            yield server
    except ConnectError as error:
        pytest.skip(f"OpenSSH: {error}")


@pytest.mark.thorough
class TestAsyncssh(ObjectContract):
    page = 100

    @pytest.fixture
    def store(self, sftp: SftpServer) -> Iterator[SftpFiles]:
        with closing(opened(sftp.server, "lake")) as found:
            yield found


@pytest.mark.thorough
class TestOpenSsh(ObjectContract):
    page = 100

    @pytest.fixture
    def store(self, openssh: FileServer) -> Iterator[SftpFiles]:
        with closing(opened(openssh, unique_prefix())) as found:
            yield found


def test_an_upload_appears_whole_and_replaces_one_of_its_name(store: SftpFiles, sftp: SftpServer) -> None:
    for content in (b"a" * 3 * MIB, b"b" * 2 * MIB + b"!"):
        upload = begin_upload(store, "t/f.bin", UploadSettings())
        before = store.size("t/f.bin")
        upload.send(content[:MIB])
        upload.send(content[MIB : 2 * MIB])
        assert store.size("t/f.bin") == before
        upload.finish(content[2 * MIB :], {})
        assert store.read("t/f.bin") == content
    assert [path for path, _ in store.below("")] == ["t/f.bin"]
    assert (sftp.folder / "lake/t/f.bin").stat().st_size == 2 * MIB + 1


def test_a_frozen_task_whose_parts_were_removed_spoils_no_file(store: SftpFiles) -> None:
    frozen = begin_upload(store, "f", UploadSettings(staging="staging"))
    frozen.send(b"first ")
    store.remove_tree("staging")
    store.create("f", b"first second")
    with pytest.raises(ConnectError):
        frozen.send(b"second")
    with pytest.raises(ConnectError):
        frozen.finish(b"", {})
    assert store.read("f") == b"first second"
    assert store.names("staging") == []


def test_a_full_disk_is_an_error_and_no_file(sftp: SftpServer, store: SftpFiles) -> None:
    sftp.largest = MIB + 1
    upload = begin_upload(store, "large", UploadSettings())
    with pytest.raises(RetriableError, match="No space left"):
        upload.finish(b"-" * 2 * MIB, {})
    with pytest.raises(RetriableError, match="No space left"):
        store.create("large", b"-" * 2 * MIB)
    system = SftpSystem(Address("sftp", "/", "127.0.0.1", sftp.port), account_of(sftp.server), HostRules.of((), ()))
    with closing(system), pytest.raises(RetriableError, match="No space left"), system.writing("/lake/large") as file:
        file.write(b"-" * 2 * MIB)
    upload.discard()
    assert list(store.below("")) == []


def test_a_cut_connection_is_made_again(sftp: SftpServer, store: SftpFiles) -> None:
    store.create("a", b"1")
    sftp.cut()
    with pytest.raises(RetriableError):
        store.create("b", b"2")
    store.create("b", b"2")
    assert (store.read("a"), store.read("b")) == (b"1", b"2")
