"""The addresses of folders: paths, and URLs of remote file systems."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from connect.config.url import shown_url
from connect.errors import ConfigError
from connect.kits.objects.location import scheme_remedy

__all__ = ["OBJECT_SCHEMES", "REMOTE_SCHEMES", "Address", "parse_address", "place_beside", "place_in"]

OBJECT_SCHEMES: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss")
REMOTE_SCHEMES: Final = ("sftp", "ftp", "ftps", "smb", "http", "https")
_ALIKE: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "ftps": "ftp", "https": "http"}
"""Schemes under which the same folders are reached."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


@dataclass(frozen=True, slots=True)
class Address:
    """A folder: its scheme (``file`` for a local one), its server, and its path there."""

    scheme: str
    path: str
    host: str = ""
    port: int | None = None
    user: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the folder is on this machine."""
        return self.scheme == "file"

    @property
    def is_object_store(self) -> bool:
        """Whether the folder is a prefix of keys in a bucket."""
        return self.scheme in OBJECT_SCHEMES

    @property
    def server(self) -> str:
        """The URL of the server or bucket, without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port is None else f':{self.port}'}"

    def at(self, path: str) -> Address:
        """Return the address of another path on the same server."""
        return replace(self, path=path)

    def has(self, other: Address) -> bool:
        """Whether another folder is on the same server, or in the same bucket."""
        schemes = {_ALIKE.get(each.scheme, each.scheme) for each in (self, other)}
        ports = {each.port for each in (self, other)} - {None}
        return len(schemes) == 1 and len(ports) < 2 and self.host.lower() == other.host.lower()

    def shown(self, path: str) -> str:
        """Return the URL of a path on the same server, as source offsets and users get it."""
        return path if self.is_local else f"{self.server}/{path.lstrip('/')}"


def parse_address(key: str, text: str) -> Address:
    """Return the address that a path or URL names. Raises :class:`~connect.errors.ConfigError` for ``key``."""
    if not _SCHEME.match(text):
        return Address("file", str(Path(text).absolute()) if text else text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # The reason would quote what may be a password, so it is not chained.
        raise ConfigError(key, shown_url(text), "Its host or port is not valid.") from None
    if parts.password is not None:
        raise ConfigError(
            key, shown_url(text), "It must not contain a password: set file.system.password in its place."
        )
    return _address(key, text, parts, port)


def _address(key: str, text: str, parts: SplitResult, port: int | None) -> Address:
    scheme = parts.scheme.lower()
    if scheme == "file" and parts.hostname in (None, "localhost"):
        return Address("file", str(Path(unquote(parts.path)).absolute()))
    if scheme in OBJECT_SCHEMES and parts.netloc:
        return Address(
            scheme, unquote(parts.path).strip("/"), parts.netloc.lower() if "@" in parts.netloc else parts.netloc
        )
    if scheme in REMOTE_SCHEMES and parts.hostname:
        user = None if parts.username is None else unquote(parts.username)
        is_web = scheme in ("http", "https")
        path = quote(parts.path, safe="/%") if is_web else unquote(parts.path)
        return Address(scheme, path.rstrip("/") or "/", parts.hostname, port, user)
    known = ", ".join(f"{each}://" for each in (*REMOTE_SCHEMES, "s3", "gs", "abfss"))
    general = f"Use a path, a file: URL, or a URL with a host that begins with {known}."
    remedy = None if scheme in REMOTE_SCHEMES else scheme_remedy(scheme)
    raise ConfigError(key, shown_url(text), remedy or general)


def place_beside(key: str, address: Address, folder: str) -> str:
    """Return the path of another folder on the same system, given as its path there or as a URL.

    Raises :class:`~connect.errors.ConfigError` for ``key`` if it is elsewhere.
    """
    if address.is_local or _SCHEME.match(folder):
        other = parse_address(key, folder)
        if not address.has(other):
            where = "this machine" if address.is_local else address.server
            raise ConfigError(
                key, shown_url(folder), f"Files are moved within one system alone: name a folder on {where}."
            )
        return other.path
    return folder.strip("/") if address.is_object_store else f"/{folder.strip('/')}"


def place_in(folder: str, name: str) -> str:
    """Return the path of what is in a folder. Paths in a bucket do not begin with a slash, and that of the bucket is
    empty.
    """
    return f"{folder.rstrip('/')}/{name}" if folder else name
