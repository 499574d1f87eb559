"""Files on servers of FTP and HTTP, by fsspec, and of SMB."""

from __future__ import annotations

import datetime as dt
import ftplib
import posixpath
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, Final, cast

from connect.errors import ConnectError, RetriableError
from connect.hosts import HostRules
from connect.internals.extras import how_to_install
from connect.kits.files.systems.address import Address
from connect.kits.files.systems.smb import SmbFiles, is_refused_login
from connect.kits.files.systems.system import (
    NANOSECONDS,
    FileStatus,
    FoundFile,
    OpenedFile,
    is_hidden,
    is_part,
    part_name,
)

__all__ = ["RemoteAccount", "RemoteSystem"]

_SECONDS: Final = 30
_NOT_THERE: Final = "550"
_LOGIN: Final = ("530", "430", "331", "332")
_TIMES: Final = ("mtime", "modified", "modify", "LastModified", "last_write_time", "Last-Modified")
_TAGS: Final = ("ETag", "etag", "unique")


@dataclass(frozen=True, slots=True)
class RemoteAccount:
    """Who signs in."""

    user: str | None
    password: str | None = field(default=None, repr=False)


class RemoteSystem:
    """The files of a server; a :class:`~connect.kits.files.systems.system.FileSystem`."""

    is_local = False
    reads_ranges = False
    files_grow = True

    def __init__(self, address: Address, account: RemoteAccount, rules: HostRules) -> None:
        self._address = address
        self._account = account
        self._rules = rules
        self._opened: Any = None

    def shown(self, place: str) -> str:
        """Return the URL of a file."""
        return place if self._is_web else self._address.shown(place)

    def walk(self, folder: str, *, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        """Yield the files in a folder, and in those below it."""
        yield from self._walk(self._place(folder), "", recursive, enters)

    def _walk(self, folder: str, prefix: str, recursive: bool, enters: Callable[[str], bool]) -> Iterator[FoundFile]:
        with self._errors(f"list {self.shown(folder)}"):
            entries = self._system.ls(f"{folder}/" if self._is_web else folder, detail=True)
        for entry in entries:
            place = str(entry["name"]).rstrip("/")
            name = prefix + posixpath.basename(place)
            if is_hidden(name) or (self._is_web and not place.startswith(folder)):
                continue
            if entry["type"] == "directory" or (self._is_web and str(entry["name"]).endswith("/")):
                if recursive and enters(name):
                    yield from self._walk(place, f"{name}/", recursive, enters)
                continue
            with suppress(FileNotFoundError):
                known = entry.get("size") is not None
                yield FoundFile(name, place, _status_of(entry) if known else self.status(place))

    def status(self, place: str) -> FileStatus:
        """Return the present state of a file."""
        with self._errors(f"look at {self.shown(place)}"):
            if self._is_ftp:
                return self._ftp_status(place)
            return _status_of(self._system.info(place))

    def _ftp_status(self, place: str) -> FileStatus:
        """Find a file in the listing of its folder, as a scan does: other commands tell other times."""
        entries = self._system.ls(posixpath.dirname(place), detail=True)
        for entry in entries:
            if entry["name"] == place:
                return _status_of(entry)
        raise FileNotFoundError(place)

    def open(self, place: str) -> OpenedFile:
        """Not offered: many servers read a file only from its beginning, so it is copied."""
        raise NotImplementedError(place)

    def copy(self, place: str, target: IO[bytes]) -> None:
        """Write the content of a file to a local one."""
        with self._errors(f"read {self.shown(place)}"):
            self._system.get_file(place, target)

    def remove(self, place: str) -> None:
        """Remove a file."""
        with self._errors(f"remove {self.shown(place)}"):
            self._system.rm_file(place)

    def move(self, place: str, target: str) -> None:
        """Rename a file on the server."""
        with self._errors(f"move {self.shown(place)} to {self.shown(target)}"):
            if self._system.exists(target):
                raise FileExistsError(target)
            self._system.makedirs(posixpath.dirname(target), exist_ok=True)
            self._system.mv(place, target)

    @contextmanager
    def writing(self, place: str) -> Iterator[BinaryIO]:
        """Write a file under a hidden name, and rename it."""
        folder, name = posixpath.split(place)
        beside = posixpath.join(folder, part_name(name))
        doing = f"write {self.shown(place)}"
        try:
            with self._errors(doing):
                self._system.makedirs(folder, exist_ok=True)
                with self._system.open(beside, "wb") as stream:
                    yield stream
                self._replace(beside, place)
        except BaseException:
            with suppress(ConnectError, OSError), self._errors(doing):
                self._system.rm_file(beside)
            raise

    def remove_parts(self, folder: str, start: str) -> None:
        """Remove what :meth:`writing` has left."""
        with self._errors(f"list {self.shown(folder)}"):
            for place in self._system.ls(folder, detail=False):
                if is_part(posixpath.basename(str(place)), start):
                    self._system.rm_file(place)

    def close(self) -> None:
        """End the connection."""
        system, self._opened = self._opened, None
        with suppress(Exception):
            if self._is_ftp and system is not None:
                system.ftp.close()
            if self._is_smb and system is not None:
                system.close()

    def _replace(self, place: str, target: str) -> None:
        try:
            self._system.mv(place, target)
        except (OSError, EOFError, ftplib.Error):
            # Some servers do not replace a file.
            self._system.rm_file(target)
            self._system.mv(place, target)

    @property
    def _is_web(self) -> bool:
        return self._address.scheme in ("http", "https")

    @property
    def _is_ftp(self) -> bool:
        return self._address.scheme in ("ftp", "ftps")

    @property
    def _is_smb(self) -> bool:
        return self._address.scheme == "smb"

    def _place(self, folder: str) -> str:
        return f"{self._address.server}{folder}".rstrip("/") if self._is_web else folder

    @property
    def _system(self) -> Any:
        """The file system, which is connected if it is not."""
        if self._opened is None:
            self._opened = self._connected()
        return self._opened

    def _connected(self) -> Any:
        try:
            import fsspec  # noqa: PLC0415 - an extra

            if self._address.scheme == "ftps":
                return _secured_ftp()(**self._settings())
            if self._is_smb:
                return SmbFiles(**self._settings())
            return fsspec.filesystem(self._address.scheme, **self._settings())
        except ImportError as error:
            raise ConnectError(f"{self._address.scheme}:// needs more: {how_to_install('files')} ({error})") from error

    def _settings(self) -> Mapping[str, Any]:
        address, account = self._address, self._account
        always = {"skip_instance_cache": True, "use_listings_cache": False}
        if self._is_web:
            return {**always, "client_kwargs": self._web_login()}
        port = address.port or {"ftp": 21, "ftps": 21, "smb": 445}[address.scheme]
        # The rules are for names and their addresses; the library resolves the name again.
        self._rules.reachable(address.host, port)
        login = {"host": address.host, "port": port, "username": account.user, "password": account.password}
        return {**always, **login, "timeout": _SECONDS} if self._is_ftp else login

    def _web_login(self) -> Mapping[str, Any]:
        default = 443 if self._address.scheme == "https" else 80
        self._rules.reachable(self._address.host, self._address.port or default)
        if self._account.user is None:
            return {}
        import aiohttp  # noqa: PLC0415 - an extra

        return {"auth": aiohttp.BasicAuth(self._account.user, self._account.password or "")}

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Translate the errors of requests."""
        what = f"Cannot {doing}"
        try:
            yield
        except (FileNotFoundError, FileExistsError, ConnectError):
            raise
        except ssl.SSLCertVerificationError as error:
            raise ConnectError(
                f"{what}: the server's certificate is not trusted ({error}). If it is of your own authority, name the "
                "file with that one's certificate in SSL_CERT_FILE in the worker's environment."
            ) from error
        except PermissionError as error:
            raise ConnectError(f"{what}: {self._not_allowed}") from error
        except ftplib.error_perm as error:
            code = str(error)[:3]
            if code == _NOT_THERE:
                raise FileNotFoundError(doing) from error
            self.close()
            if code in _LOGIN:
                raise ConnectError(f"{what}: {self._refused}") from error
            raise ConnectError(f"{what}: the server answers {error}.") from error
        except NotImplementedError as error:
            raise ConnectError(f"{what}: files at {self._address.scheme}:// can only be read.") from error
        except Exception as error:
            if self._is_smb and is_refused_login(error):
                raise ConnectError(f"{what}: {self._refused}") from error
            # Each protocol has errors of its own library; what is none of those above is taken to pass.
            self.close()
            raise RetriableError(f"{what}: {error or type(error).__name__}.") from error

    @property
    def _refused(self) -> str:
        return f"the server refuses the user {self._account.user}. Check file.system.username and file.system.password."

    @property
    def _not_allowed(self) -> str:
        return f"permission denied. Grant it to the user {self._account.user}."


class _SecuredFtp(ftplib.FTP_TLS):
    """Signs in only to servers with a trusted certificate, which Python's client by itself does not look at."""

    def __init__(self, seconds: float, encoding: str) -> None:
        super().__init__(timeout=seconds, encoding=encoding, context=ssl.create_default_context())

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        """Open a connection for data, in the session of that for commands: vsftpd and others take no other."""
        connection, size = ftplib.FTP.ntransfercmd(self, cmd, rest)  # noqa: S321 - it is encrypted below
        session = cast("ssl.SSLSocket", self.sock).session
        return self.context.wrap_socket(connection, server_hostname=self.host, session=session), size


def _secured_ftp() -> Any:
    """Return the class of file systems by FTP in which commands and data are encrypted."""
    from fsspec.implementations.ftp import FTPFileSystem  # noqa: PLC0415 - an extra

    class SecuredFtpFileSystem(FTPFileSystem):  # type: ignore[misc]
        """Connects, also where the connection is lost."""

        cachable = False

        def _connect(self) -> None:
            self.ftp = _SecuredFtp(self.timeout, self.encoding)
            self.ftp.connect(self.host, self.port)
            self.ftp.login(*self.cred)
            self.ftp.prot_p()

    return SecuredFtpFileSystem


def _status_of(info: Mapping[str, Any]) -> FileStatus:
    times = [info[key] for key in _TIMES if info.get(key) is not None]
    tags = [str(info[key]) for key in _TAGS if info.get(key)]
    time: Any = times[0] if times else None
    if isinstance(time, dt.datetime):
        modified = int(time.timestamp() * NANOSECONDS)
    elif isinstance(time, int | float):
        modified = int(time * NANOSECONDS)
    else:
        tags += [] if time is None else [str(time)]
        modified = 0
    return FileStatus(" ".join(tags), int(info.get("size") or 0), modified)
