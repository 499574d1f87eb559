"""Stores: the file systems and object stores for tables and their ledger, behind a common interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TypeVar

from connectors.spark.stores.parts import PartPlace

__all__ = ["StagedFile", "Store", "Upload", "ask_all"]

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload to an object store that is not completed: its id, and the tags of its parts in order."""

    id: str
    parts: Sequence[str]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that Spark has written and that no reader sees.

    ``path`` is relative to the folder it was found in. A store whose staged files are uploads has decided their final
    name, ``target``, when they were begun; nobody can read them before they are published.
    """

    path: str
    size: int
    target: str | None = None
    upload: Upload | None = None


class Store(Protocol):
    """A place for tables and their ledger. Paths are relative to it, with ``/`` between their parts.

    Whatever a method says is there is there for everybody as soon as it returns: reads and lists are consistent. Where
    nothing else is said it is durable then, too. Errors of the store itself are
    :class:`~connect.errors.ConnectError`, or :class:`~connect.errors.RetriableError` where trying again may help.
    """

    @property
    def concurrency(self) -> int:
        """How many files it can publish in parallel."""

    @property
    def url(self) -> str:
        """The store's URL, without a trailing slash."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content; :class:`FileExistsError` if there is one of that name.

        Of many that create the same file at once exactly one succeeds. The content appears whole or not at all,
        whatever is killed. Folders that are missing are made.
        """

    def read(self, path: str) -> bytes:
        """Return the content of a file; :class:`FileNotFoundError` if there is none."""

    def open(self, path: str) -> BinaryIO:
        """A file for random reads, such as of a Parquet file by pyarrow; :class:`FileNotFoundError` as above."""

    def names(self, path: str) -> list[str]:
        """The names of the files and folders in a folder, sorted; none if there is no such folder."""

    def files(self, path: str) -> Iterator[str]:
        """The files below a folder in the order of their paths in it, without those that a reader would ignore."""

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if there is none."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder and all below it, if it is there, with the uploads whose staged files are in it.

        Something may still be writing into it: then what is left is removed by the next call.
        """

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """The folder for what the loads of a connector, named as a folder, write before they are committed."""

    def begin(self, folder: str, table: str) -> None:
        """Prepare a folder below :meth:`staging` for files that are to be published below the folder ``table``."""

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:
        """The options of Spark's writer for files that are staged in ``folder`` and published below ``table``.

        ``folders`` are the folders below ``table`` for the output of Spark's partitions, as far as it has some before
        it is written. A store with :attr:`names_when_staging` needs them; others ignore them.
        """

    @property
    def names_when_staging(self) -> bool:
        """Whether files have their final names, and cannot be read, from when they are staged."""

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace | None:
        """Where the Python of executors is to write files; ``None`` where only Spark's writers can be used.

        The arguments are those of :meth:`writer_options`, with splits in place of Spark's partitions.
        """

    def uri(self, path: str) -> str:
        """Return the URI of a file or folder, as Spark needs it."""

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """The files that a Spark job has written into a folder, without those of attempts at tasks that failed."""

    def sync_files(self, paths: Iterable[str]) -> None:
        """Make these staged files durable, whichever process wrote them.

        :class:`FileNotFoundError` if one is found to be gone.
        """

    def publish(self, staged: str, target: str, upload: Upload | None) -> None:
        """Give a staged file its final name: a reader sees it whole or not at all, at once. Nothing is copied.

        A file that is published already stays as it is. :class:`FileExistsError` if another file has that name,
        :class:`FileNotFoundError` if the file is neither staged nor published. It is durable after
        :meth:`sync_folders`.
        """

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Make the names in these folders, and in those above them, durable."""

    def abandon(self, folder: str, check: Callable[[], None]) -> None:
        """Remove a folder below :meth:`staging` with all that was begun for it, by processes that are long dead too.

        ``check`` raises if another driver has taken over. What is found before it passes is not the other's.
        """


def ask_all(store: Store, question: Callable[[Q], A], about: Sequence[Q]) -> list[A]:
    """Ask a store about many things at once, as far as it can do that.

    Returns the answers in the order of ``about``, or raises the first error.
    """
    if store.concurrency == 1:
        # Threads of their own would each need a connection to Spark's Java.
        return [question(each) for each in about]
    with ThreadPoolExecutor(store.concurrency) as threads:
        return list(threads.map(question, about))
