"""Files on SFTP servers, whose host keys are checked."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import logging
import posixpath
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, cast

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostRules
from connect.internals.extras import how_to_install
from connect.kits.files.systems.address import Address
from connect.kits.files.systems.system import (
    NANOSECONDS,
    FileStatus,
    FoundFile,
    OpenedFile,
    is_hidden,
    is_part,
    part_name,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SftpAccount", "SftpEntry", "SftpSystem"]

_PORT: Final = 22
_SECONDS: Final = 30.0
_READ_AHEAD: Final = 1024 * 1024
"""How much is asked for at once: in many requests whose answers are not waited for one by one."""
_WRITTEN_AT_ONCE: Final = 256 * 1024
_REQUEST_BYTES: Final = 32768
"""The most that every server takes in one write."""
_REQUESTS_AT_ONCE: Final = 256

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SftpAccount:
    """Who signs in, and how the server proves who it is."""

    user: str | None
    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    private_key_path: str | None = None
    passphrase: str | None = field(default=None, repr=False)
    known_hosts: str | None = None
    host_key: str | None = None
    """The server's public key, as in a known_hosts file, or its SHA-256 fingerprint."""
    any_host_key: bool = False


@dataclass(frozen=True, slots=True)
class SftpEntry:
    """What a list of a folder tells."""

    name: str
    is_folder: bool
    size: int


class SftpSystem:
    """The files of an SFTP server; a :class:`~connect.kits.files.systems.system.FileSystem`."""

    is_local = False
    reads_ranges = True
    files_grow = True

    def __init__(self, address: Address, account: SftpAccount, rules: HostRules) -> None:
        self._address = address
        self._account = account
        self._rules = rules
        self._client: Any = None
        self._files: Any = None

    def shown(self, place: str) -> str:
        """Return the URL of a file."""
        return self._address.shown(place)

    def walk(self, folder: str, *, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        """Yield the files in a folder, and in those below it."""
        yield from self._walk(folder, "", recursive, enters)

    def _walk(self, folder: str, prefix: str, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        with self._errors(f"list {self.shown(folder)}"):
            entries = list(self._session.listdir_iter(folder))
        for entry in entries:
            name, place = prefix + entry.filename, posixpath.join(folder, entry.filename)
            if is_hidden(entry.filename):
                continue
            try:
                if stat.S_ISDIR(entry.st_mode or 0):
                    if recursive and enters(name):
                        yield from self._walk(place, f"{name}/", recursive, enters)
                elif stat.S_ISREG(entry.st_mode or 0):
                    yield FoundFile(name, place, _status_of(entry))
                elif stat.S_ISLNK(entry.st_mode or 0) and stat.S_ISREG(self._stat(place).st_mode or 0):
                    yield FoundFile(name, place, self.status(place))
            except FileNotFoundError:
                # It was removed during the scan.
                continue

    def status(self, place: str) -> FileStatus:
        """Return the present state of a file."""
        return _status_of(self._stat(place))

    def open(self, place: str) -> OpenedFile:
        """Open a file. Reads ask for a megabyte at once."""
        with self._errors(f"open {self.shown(place)}"):
            file = self._session.open(place, "rb")
        raw = _Reads(file, lambda: self._errors(f"read {self.shown(place)}"))
        return OpenedFile(cast("BinaryIO", io.BufferedReader(raw, _READ_AHEAD)), lambda: self._open_status(file, place))

    def _open_status(self, file: Any, place: str) -> FileStatus:
        with self._errors(f"read {self.shown(place)}"):
            return _status_of(file.stat())

    def copy(self, place: str, target: IO[bytes]) -> None:
        """Write the content of a file to a local one."""
        with closing(self.open(place).stream) as stream:
            shutil.copyfileobj(stream, target, _READ_AHEAD)

    def remove(self, place: str) -> None:
        """Remove a file."""
        with self._errors(f"remove {self.shown(place)}"):
            self._session.remove(place)

    def move(self, place: str, target: str) -> None:
        """Rename a file on the server."""
        with suppress(FileNotFoundError):
            self._stat(target)
            raise FileExistsError(target)
        self._make_folders(posixpath.dirname(target))
        with self._errors(f"move {self.shown(place)} to {self.shown(target)}"):
            self._session.rename(place, target)

    @contextmanager
    def writing(self, place: str) -> Iterator[BinaryIO]:
        """Write a file under a hidden name, sync it where the server can, and rename it."""
        folder, name = posixpath.split(place)
        self._make_folders(folder)
        beside = posixpath.join(folder, part_name(name))
        doing = f"write {self.shown(place)}"
        with self._errors(doing):
            file = self._session.open(beside, "wx")
        raw = _Writes(file, lambda: self._errors(doing))
        try:
            with cast("BinaryIO", io.BufferedWriter(raw, _WRITTEN_AT_ONCE)) as stream:
                yield stream
                stream.flush()
                with self._errors(doing):
                    raw.finish()
                    self._sync(file)
            with self._errors(doing):
                self._replace(beside, place)
        except BaseException:
            with suppress(ConnectError, OSError), self._errors(doing):
                self._session.remove(beside)
            raise

    def create(self, place: str, data: bytes) -> None:
        """Create a file, whole or not at all; raises :class:`FileExistsError` if the name is taken."""
        folder, name = posixpath.split(place)
        self._make_folders(folder)
        beside = posixpath.join(folder, part_name(name))
        try:
            with self._errors(f"write {self.shown(place)}"):
                self._put(beside, "wx", data)
                self._link(beside, place)
        except BaseException:
            with suppress(ConnectError, OSError), self._errors(f"remove {self.shown(beside)}"):
                self._session.remove(beside)
            raise

    def append(self, place: str, data: bytes | bytearray, position: int) -> None:
        """Add bytes to the end of a file, which has so many already, and is created if that is none.

        They are durable where the server can sync files.
        """
        if not position:
            self._make_folders(posixpath.dirname(place))
        with self._errors(f"write {self.shown(place)}"):
            self._put(place, "r+b" if position else "wx", data, position)

    def replace(self, place: str, target: str) -> None:
        """Rename a file on the server, in place of another that has the name."""
        self._make_folders(posixpath.dirname(target))
        with self._errors(f"move {self.shown(place)} to {self.shown(target)}"):
            self._replace(place, target)

    def entries(self, folder: str) -> list[SftpEntry]:
        """Return what is in a folder, hidden ones too, sorted by name; links stand for what they lead to.

        Raises :class:`FileNotFoundError` if the folder does not exist.
        """
        with self._errors(f"list {self.shown(folder)}"):
            found = sorted(self._session.listdir_attr(folder), key=lambda entry: str(entry.filename))
        return [entry for each in found if (entry := self._entry(folder, each)) is not None]

    def _entry(self, folder: str, entry: Any) -> SftpEntry | None:
        name, is_link = entry.filename, stat.S_ISLNK(entry.st_mode or 0)
        if is_link:
            try:
                entry = self._stat(posixpath.join(folder, name))
            except FileNotFoundError:
                return None
        is_folder = stat.S_ISDIR(entry.st_mode or 0)
        return None if is_link and is_folder else SftpEntry(name, is_folder, entry.st_size or 0)

    def remove_folder(self, place: str) -> None:
        """Remove a folder that is empty."""
        with self._errors(f"remove {self.shown(place)}"):
            self._session.rmdir(place)

    def _put(self, place: str, mode: str, data: bytes | bytearray, position: int = 0) -> None:
        """Write bytes to a file from a position on, and have them synced."""
        with closing(self._session.open(place, mode)) as file:
            writes = _Pipeline(file, position)
            writes.send(data)
            writes.finish()
            self._sync(file)

    def remove_parts(self, folder: str, start: str) -> None:
        """Remove what :meth:`writing` has left."""
        with self._errors(f"list {self.shown(folder)}"):
            for name in self._session.listdir(folder):
                if is_part(name, start):
                    self._session.remove(posixpath.join(folder, name))

    def close(self) -> None:
        """End the connection."""
        client, self._client, self._files = self._client, None, None
        if client is not None:
            client.close()

    # -- requests --------------------------------------------------------------------------------------------

    @property
    def _session(self) -> Any:
        """The session, which is opened if there is none."""
        if self._files is None:
            self._client = self._connected()
            self._files = self._client.open_sftp()
            self._files.get_channel().settimeout(_SECONDS)
        return self._files

    def _connected(self) -> Any:
        ssh = _library()
        client = ssh.SSHClient()
        port = self._address.port or _PORT
        self._trust(client, port)
        host, account = self._address.host, self._account
        connection = _connection(self._rules.reachable(host, port), port)
        try:
            client.connect(
                host,
                port,
                username=account.user,
                password=account.password,
                pkey=_private_key(account),
                sock=connection,
                timeout=_SECONDS,
                banner_timeout=_SECONDS,
                auth_timeout=_SECONDS,
                look_for_keys=not (account.password or account.private_key or account.private_key_path),
                allow_agent=not (account.password or account.private_key or account.private_key_path),
            )
        except BaseException:
            client.close()
            connection.close()
            raise
        return client

    def _trust(self, client: Any, port: int) -> None:
        """Have the client accept the keys that the account names."""
        account = self._account
        if account.known_hosts is not None:
            try:
                client.load_host_keys(account.known_hosts)
            except OSError as error:
                raise ConnectError(f"sftp.known.hosts={account.known_hosts} cannot be read: {error}") from error
        elif account.host_key is None and not account.any_host_key:
            client.load_system_host_keys()
        client.set_missing_host_key_policy(_policy(account, f"{self._address.host}:{port}"))

    def _stat(self, place: str) -> Any:
        with self._errors(f"look at {self.shown(place)}"):
            return self._session.stat(place)

    def _make_folders(self, folder: str) -> None:
        if not folder:
            return
        try:
            self._stat(folder)
        except FileNotFoundError:
            above = posixpath.dirname(folder)
            self._make_folders(above)
            if above and not stat.S_ISDIR(self._stat(above).st_mode or stat.S_IFDIR):
                raise ConnectError(
                    f"Cannot make the folder {self.shown(folder)}: {self.shown(above)} is a file. Move it away, or "
                    "name another folder."
                ) from None
            with self._errors(f"make the folder {self.shown(folder)}"):
                try:
                    self._session.mkdir(folder)
                except OSError:
                    # Another task may have made it.
                    self._session.stat(folder)

    def _sync(self, file: Any) -> None:
        """Have the server write a file to its disk; servers other than OpenSSH may not know how."""
        from paramiko.sftp import CMD_EXTENDED  # noqa: PLC0415 - as paramiko

        with suppress(OSError):
            self._session._request(CMD_EXTENDED, "fsync@openssh.com", file.handle)

    def _replace(self, place: str, target: str) -> None:
        try:
            self._session.posix_rename(place, target)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:
            # The server does not know the extension, and its rename replaces nothing. What is to be renamed must be
            # there before its target is removed.
            self._session.stat(place)
            with suppress(FileNotFoundError):
                self._session.remove(target)
            self._session.rename(place, target)

    def _link(self, place: str, target: str) -> None:
        """Give a file a name that is not taken; raises :class:`FileExistsError` if it is."""
        from paramiko.sftp import CMD_EXTENDED  # noqa: PLC0415 - as paramiko

        try:
            self._session._request(CMD_EXTENDED, "hardlink@openssh.com", place.encode(), target.encode())
            self._session.remove(place)
        except (FileNotFoundError, PermissionError):
            raise
        except OSError:
            if self._exists(target):
                raise FileExistsError(target) from None
            # The server does not know the extension, or its disk no links: its rename replaces nothing.
            self._rename_absent(place, target)

    def _rename_absent(self, place: str, target: str) -> None:
        try:
            self._session.rename(place, target)
        except OSError:
            if self._exists(target):
                raise FileExistsError(target) from None
            raise

    def _exists(self, place: str) -> bool:
        try:
            self._session.lstat(place)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Translate the errors of requests."""
        ssh = _library()
        what = f"Cannot {doing}"
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except PermissionError as error:
            raise ConnectError(f"{what}: permission denied. Grant it to the user {self._account.user}.") from error
        except ssh.AuthenticationException as error:
            self.close()
            raise ConnectError(
                f"{what}: the server refuses the user {self._account.user}. Check file.system.username, "
                "file.system.password and sftp.private.key."
            ) from error
        except ssh.BadHostKeyException as error:
            self.close()
            raise ConnectError(f"{what}: {_changed(error.key)}") from error
        except (ssh.SSHException, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.EACCES:
                raise ConnectError(f"{what}: permission denied.") from error
            self.close()
            raise RetriableError(f"{what}: {error or 'the connection was lost'}.") from error


class _Reads(io.RawIOBase):
    """Reads a file in large pieces, each by many requests at once."""

    def __init__(self, file: Any, errors: Callable[[], Any]) -> None:
        self._file = file
        self._errors = errors
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            with self._errors():
                self._position = self._file.stat().st_size + offset
        else:
            self._position = offset + (self._position if whence == io.SEEK_CUR else 0)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        with self._errors():
            size = max(0, min(len(view), self._file.stat().st_size - self._position))
            data = b"".join(self._file.readv([(self._position, size)])) if size else b""
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with suppress(Exception):
                self._file.close()
        super().close()


class _Writes(io.RawIOBase):
    """Writes a file, with many requests at once."""

    def __init__(self, file: Any, errors: Callable[[], Any]) -> None:
        self._file = file
        self._errors = errors
        self._pipeline = _Pipeline(file, 0)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        with self._errors():
            self._pipeline.send(data)
        return memoryview(data).nbytes

    def finish(self) -> None:
        """Wait until everything is written; raises what went wrong."""
        self._pipeline.finish()

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._errors():
                self._file.close()


class _Pipeline:
    """Writes that are not waited for one by one, and the first of them that failed.

    The library's own pipelined files forget the answers to writes, so that a full disk would go unseen.
    """

    def __init__(self, file: Any, position: int) -> None:
        self._session = file.sftp
        self._handle = file.handle
        self._position = position
        self._waiting = 0
        self._failure: Exception | None = None

    def send(self, data: Buffer) -> None:
        """Ask for bytes to be written."""
        from paramiko.sftp import CMD_WRITE, int64  # noqa: PLC0415 - as paramiko

        view = memoryview(data).cast("B")
        for start in range(0, len(view), _REQUEST_BYTES):
            piece = bytes(view[start : start + _REQUEST_BYTES])
            self._session._async_request(self, CMD_WRITE, self._handle, int64(self._position), piece)
            self._position += len(piece)
            self._waiting += 1
            if self._waiting >= _REQUESTS_AT_ONCE:
                self.finish()

    def finish(self) -> None:
        """Wait for all answers; raises the first that was an error."""
        self._session._finish_responses(self)
        self._waiting = 0
        self._check_exception()

    def _async_response(self, kind: int, message: Any, number: int) -> None:  # noqa: ARG002 - the library's
        """Take an answer: the library calls this."""
        try:
            self._session._convert_status(message)
        except (OSError, EOFError) as error:
            self._failure = self._failure or error

    def _check_exception(self) -> None:
        """Raise what was an error: the library calls this, too."""
        if self._failure is not None:
            raise self._failure


def _library() -> Any:
    try:
        import paramiko  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise ConnectError(f"sftp:// needs paramiko: {how_to_install('sftp')}") from error
    if not (log := logging.getLogger("paramiko")).level:
        # A line of each connection, unless someone asks for it.
        log.setLevel(logging.WARNING)
    return paramiko


def _connection(addresses: list[str], port: int) -> socket.socket:
    """Connect to the first address that answers."""
    last: OSError | None = None
    for address in addresses:
        try:
            return socket.create_connection((address, port), _SECONDS)
        except OSError as error:
            last = error
    raise last or OSError("the name of the host has no address")


def _private_key(account: SftpAccount) -> Any:
    """Return the key to sign in with, if one is given."""
    ssh = _library()
    if account.private_key is None and account.private_key_path is None:
        return None
    key = "sftp.private.key" if account.private_key is not None else "sftp.private.key.path"
    try:
        text = account.private_key or Path(account.private_key_path or "").read_text(encoding="ascii")
    except (OSError, UnicodeError) as error:
        raise ConnectError(f"{key} cannot be read: {error}") from error
    for kind in (ssh.Ed25519Key, ssh.ECDSAKey, ssh.RSAKey):
        with suppress(ssh.SSHException, ValueError, IndexError):
            return kind.from_private_key(io.StringIO(text.replace("\\n", "\n")), account.passphrase)
    # What the library says of it may quote it.
    raise ConnectError(f"{key} is not a private key of type Ed25519, ECDSA or RSA, or sftp.passphrase does not fit it.")


def _policy(account: SftpAccount, server: str) -> Any:
    """Decide on a key that no known_hosts file has."""
    policies: Any = _library().MissingHostKeyPolicy

    class Policy(policies):  # type: ignore[misc]
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:  # noqa: ARG002 - the library's
            if account.host_key is not None and _is_key(account.host_key, key):
                return
            if account.any_host_key:
                _log.warning(
                    "The key of %s is not checked, so another server could answer in its place: set sftp.host.key=%s",
                    server,
                    _fingerprint(key),
                )
                return
            raise _UnknownHostError(
                f"The key of {server}, {key.get_name()} {_fingerprint(key)}, is not known. If it is the right one, set "
                "sftp.host.key to it, or add it to the file that sftp.known.hosts names."
            )

    return Policy()


class _UnknownHostError(ConnectError):
    """The server has another key than it should."""


def _is_key(text: str, key: Any) -> bool:
    return text in (_fingerprint(key), key.get_base64()) or key.get_base64() in text.split()


def _fingerprint(key: Any) -> str:
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _changed(key: Any) -> str:
    return (
        f"the server has the key {_fingerprint(key)}, and not the one that is known of it. Somebody may be answering "
        "in its place; if it was replaced, correct sftp.known.hosts."
    )


def _status_of(entry: Any) -> FileStatus:
    return FileStatus("", entry.st_size or 0, (entry.st_mtime or 0) * NANOSECONDS)
