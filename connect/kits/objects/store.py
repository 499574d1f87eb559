"""The stores of objects: one interface, and the store of each kind of place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from connect.errors import ConfigError, ConnectError
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.gcs import GoogleObjects
from connect.kits.objects.local import LocalFiles, folder_problem
from connect.kits.objects.location import Location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.s3 import S3Objects

__all__ = ["ObjectStore", "open_store", "store_problem"]


class ObjectStore(Protocol):
    """The objects of a bucket below a prefix, or the files below a folder, by their paths relative to it.

    Once a method returns, everybody sees its effect, and it is durable: reads and lists are consistent. Errors of the
    store itself are :class:`~connect.errors.ConnectError`, or :class:`~connect.errors.RetriableError` where trying
    again may help. Opening a store makes no request. Many threads may share one.
    """

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content; raises :class:`FileExistsError` if the name is taken.

        If several callers create the same file at once, exactly one succeeds. The content appears whole or not at all,
        whatever is killed. Missing folders are created.
        """

    def read(self, path: str) -> bytes:
        """Return the content of a file; raises :class:`FileNotFoundError` if it does not exist."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for random reads, for example a Parquet file for pyarrow; raises as :meth:`read` does."""

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if it does not exist."""

    def names(self, path: str) -> list[str]:
        """Return the names of the files and folders in a folder, sorted; none if the folder does not exist."""

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """Return the files below a folder, hidden ones too, ordered by path, with their sizes."""

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything below it, if it exists.

        Something may still be writing into it: what is left then is removed by the next call.
        """


_STORES: Final[Mapping[str, Callable[[Location, ObjectOptions], ObjectStore]]] = {
    "local": lambda place, _: LocalFiles(Path(place.path)),
    "s3": lambda place, options: S3Objects(options.s3_account, place.authority, place.path),
    "gcs": lambda place, options: GoogleObjects(options.google_account, place.authority, place.path),
    "azure": lambda place, options: AzureBlobs(options.azure_account_of(place), place.container, place.path),
}


def open_store(place: Location, options: ObjectOptions) -> ObjectStore:
    """Open the store that a URL names; :func:`~connect.kits.objects.location.parse_location` has parsed it."""
    if place.kind not in _STORES:
        raise ConfigError("store.url", place.uri, "It is reached through Spark alone (engine=spark): use another URL.")
    return _STORES[place.kind](place, options)


def store_problem(store: ObjectStore, folder: str, *, writes: bool) -> str | None:
    """Return why a store cannot be used; ``None`` if nothing speaks against it.

    A service is asked for the first objects of the folder, which shows that it can be reached, that it has the bucket,
    and that it knows the credentials. Whether they may write is not tried, as that would leave an object behind.
    """
    if isinstance(store, LocalFiles):
        return folder_problem(store.root, writes=writes)
    try:
        next(iter(store.below(folder)), None)
    except ConnectError as error:
        return str(error)
    except FileNotFoundError as error:
        return f"The store has no {error}: create it, or correct its name."
    return None
