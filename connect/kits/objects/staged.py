"""Staged objects: whole and durable, but not there before somebody publishes them, be it another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from connect.errors import ConnectError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.gcs import GoogleObjects
from connect.kits.objects.local import LocalFiles
from connect.kits.objects.s3 import S3Objects
from connect.kits.objects.sftp import SftpFiles

__all__ = ["Staged", "publish"]


@dataclass(frozen=True, slots=True)
class Staged:
    """What an object is made of: the parts of an upload, or an object of another name."""

    path: str
    size: int
    upload: str = ""
    parts: tuple[str, ...] = ()
    beside: str = ""

    def told(self) -> Mapping[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def parsed(cls, told: Mapping[str, Any]) -> Self:
        """Return what :meth:`told` has told."""
        return cls(**{**told, "parts": tuple(told["parts"])})


def publish(store: Any, staged: Staged) -> None:
    """Let an object appear, whole. Nothing happens if it is there already: others may publish it, too."""
    try:
        _publish(store, staged)
    except (FileNotFoundError, FileExistsError):
        if store.size(staged.path) != staged.size:
            raise ConnectError(
                f"{staged.path} is committed, and what it is made of is gone from the store: somebody has aborted its "
                "upload, or has taken the object away while it was not yet said to be there."
            ) from None
    if staged.beside:
        store.remove(staged.beside)


def _publish(store: Any, staged: Staged) -> None:
    match store:
        case S3Objects():
            store.complete(staged.path, staged.upload, staged.parts)
        case GoogleObjects():
            store.copy_if_absent(staged.beside, staged.path)
        case AzureBlobs():
            store.commit_if_absent(staged.path, staged.upload, staged.parts)
        case LocalFiles() | SftpFiles():
            store.move(staged.beside, staged.path)
