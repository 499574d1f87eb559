"""Files on SMB servers (Windows, Samba), by the calls of fsspec's file systems.

That of fsspec has one connection to a server for all of the process, and everybody is who signed in first: a connector
would read and write with the rights of another. Here each has its own.
"""

from __future__ import annotations

import errno
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

__all__ = ["SmbFiles", "is_refused_login"]

_SECONDS: Final = 30
_COPY_BYTES: Final = 1 << 20


class SmbFiles:
    """The shares of a server, as one user sees them. Errors are ``OSError`` with Python's classes, or the library's."""

    def __init__(self, host: str, port: int, username: str | None, password: str | None) -> None:
        import smbclient  # noqa: PLC0415 - an extra

        self._library = smbclient
        self._host = host
        self._options: dict[str, Any] = {"port": port, "connection_cache": {}}
        login = {"username": username, "password": password, "connection_timeout": _SECONDS}
        try:
            smbclient.register_session(host, **login, **self._options)
        except BaseException:
            self.close()
            raise

    def ls(self, folder: str, *, detail: bool) -> list[Any]:
        """Return the entries of a folder, by name or with what is known of them.

        Each is looked at by itself: a listing tells the size of a file as it was when a writer last closed it.
        """
        with _errors():
            names = self._library.listdir(self._unc(folder), **self._options)
        places = [f"{folder.rstrip('/')}/{name}" for name in names]
        return [entry for place in places if (entry := self._entry(place))] if detail else places

    def info(self, place: str) -> dict[str, Any]:
        """Return the size and time of a file, or that it is a folder."""
        with _errors():
            found = self._library.stat(self._unc(place), **self._options)
        is_folder = bool(found.st_file_attributes & stat.FILE_ATTRIBUTE_DIRECTORY)
        return {
            "name": place,
            "type": "directory" if is_folder else "file",
            "size": found.st_size,
            "mtime": found.st_mtime,
        }

    def exists(self, place: str) -> bool:
        """Return whether there is such a file or folder."""
        return self._entry(place) is not None

    def get_file(self, place: str, target: IO[bytes]) -> None:
        """Write the content of a file, which others may write and move meanwhile, into another."""
        with _errors(), self._library.open_file(self._unc(place), "rb", share_access="rwd", **self._options) as file:
            shutil.copyfileobj(file, target, _COPY_BYTES)

    def open(self, place: str, mode: str) -> Any:
        """Open a file."""
        with _errors():
            return self._library.open_file(self._unc(place), mode, **self._options)

    def rm_file(self, place: str) -> None:
        """Remove a file."""
        with _errors():
            self._library.remove(self._unc(place), **self._options)

    def mv(self, place: str, target: str) -> None:
        """Rename a file, over one that is there."""
        with _errors():
            self._library.replace(self._unc(place), self._unc(target), **self._options)

    def makedirs(self, folder: str, *, exist_ok: bool) -> None:
        """Make a folder and those above it, below the share."""
        if not exist_ok or not self.exists(folder):
            with _errors():
                self._library.makedirs(self._unc(folder), exist_ok=exist_ok, **self._options)

    def close(self) -> None:
        """End the connection."""
        self._library.reset_connection_cache(fail_on_error=False, connection_cache=self._options["connection_cache"])

    def _entry(self, place: str) -> dict[str, Any] | None:
        try:
            return self.info(place)
        except FileNotFoundError:
            return None

    def _unc(self, place: str) -> str:
        return f"\\\\{self._host}{place.rstrip('/')}".replace("/", "\\")


def is_refused_login(error: Exception) -> bool:
    """Return whether a server did not let a user in."""
    from smbprotocol import exceptions as smb  # noqa: PLC0415 - an extra

    refused = (smb.LogonFailure, smb.SMBAuthenticationError, smb.PasswordExpired, smb.WrongPassword)
    return isinstance(error, refused)


@contextmanager
def _errors() -> Iterator[None]:
    """Raise Python's classes of errors for what the library tells by numbers, or by those of the protocol."""
    from smbprotocol import exceptions as smb  # noqa: PLC0415 - an extra

    try:
        yield
    except smb.SMBOSError as error:
        match error.errno:
            case errno.ENOENT | errno.ENOTDIR:
                raise FileNotFoundError(error.errno, error.strerror, error.filename) from error
            case errno.EEXIST:
                raise FileExistsError(error.errno, error.strerror, error.filename) from error
            case errno.EACCES | errno.EPERM:
                raise PermissionError(error.errno, error.strerror, error.filename) from error
        raise
    except smb.BadNetworkName as error:
        raise FileNotFoundError("there is no such share") from error
    except smb.AccessDenied as error:
        raise PermissionError("the share is not for this user") from error
