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
    """An incomplete multipart upload to an object store: its id, and the tags of its parts in order."""

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
    """A place for tables and their ledger. Paths are relative to it, with ``/`` as separator.

    Once a method returns, everybody sees its effect: reads and lists are consistent. Unless stated otherwise, the
    effect is
    durable then, too. Errors of the store itself are :class:`~connect.errors.ConnectError`, or
    :class:`~connect.errors.RetriableError` where trying again may help.
    """

    @property
    def concurrency(self) -> int:
        """The number of files the store can publish in parallel."""

    @property
    def url(self) -> str:
        """The store's URL, without a trailing slash."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file with this content; raises :class:`FileExistsError` if the name is taken.

        If several callers create the same file at once, exactly one succeeds. The content appears whole or not at all,
        whatever is killed. Missing folders are created.
        """

    def read(self, path: str) -> bytes:
        """Return the content of a file; raises :class:`FileNotFoundError` if it does not exist."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for random reads, for example a Parquet file for pyarrow; raises as :meth:`read` does."""

    def names(self, path: str) -> list[str]:
        """The names of the files and folders in a folder, sorted; none if the folder does not exist."""

    def files(self, path: str) -> Iterator[str]:
        """The files below a folder, ordered by their paths in it, without those that a reader would ignore."""

    def size(self, path: str) -> int | None:
        """Return the size of a file, ``None`` if it does not exist."""

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder and everything below it, if it exists, with the uploads whose staged files are in it.

        Something may still be writing into it: what is left then is removed by the next call.
        """

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """Return the folder to which the loads of a connector, named as a folder, write before they are committed."""

    def begin(self, folder: str, table: str) -> None:
        """Prepare a folder below :meth:`staging` for files that will be published below the folder ``table``."""

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:
        """Return the options of Spark's writer for files that are staged in ``folder`` and published below ``table``.

        ``folders`` are the folders below ``table`` for the output of Spark's partitions, as far as they are known
        before writing. A store with :attr:`names_when_staging` needs them; others ignore them.
        """

    @property
    def names_when_staging(self) -> bool:
        """Whether files already have their final names when they are staged, although nobody can read them."""

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace | None:
        """Where executors write files from Python; ``None`` where only Spark's writers can be used.

        The arguments are those of :meth:`writer_options`, with splits in place of Spark's partitions.
        """

    def uri(self, path: str) -> str:
        """Return the URI of a file or folder, as Spark needs it."""

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the files that a Spark job has written into a folder, without those of failed task attempts."""

    def sync_files(self, paths: Iterable[str]) -> None:
        """Make these staged files durable, whichever process wrote them.

        Raises :class:`FileNotFoundError` if one turns out to be gone.
        """

    def publish(self, staged: str, target: str, upload: Upload | None) -> None:
        """Give a staged file its final name: a reader sees it whole or not at all, at once. Nothing is copied.

        A file that is published already stays as it is. Raises :class:`FileExistsError` if another file has that name,
        and
        :class:`FileNotFoundError` if the file is neither staged nor published. It is durable after
        :meth:`sync_folders`.
        """

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Make the names in these folders, and in their parents, durable."""

    def abandon(self, folder: str, check: Callable[[], None]) -> None:
        """Remove a folder below :meth:`staging` with everything that was begun for it, even by processes long dead.

        ``check`` raises if another driver has taken over. Whatever was found before it passes does not belong to that
        driver.
        """


def ask_all(store: Store, question: Callable[[Q], A], about: Sequence[Q]) -> list[A]:
    """Query a store about many things at once, as far as the store allows.

    Returns the answers in the order of ``about``, or raises the first error.
    """
    if store.concurrency == 1:
        # Each further thread would need its own connection to Spark's Java.
        return [question(each) for each in about]
    with ThreadPoolExecutor(store.concurrency) as threads:
        return list(threads.map(question, about))
