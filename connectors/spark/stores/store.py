"""Stores of tables and their ledger: what loads do with a file system or an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from connect.kits.objects.store import ObjectStore
from connectors.spark.stores.parts import PartPlace

__all__ = ["StagedFile", "Store", "Upload", "ask_all", "is_seen"]

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


class Store(ObjectStore, Protocol):
    """A place for tables and their ledger. Paths are relative to it, with ``/`` as separator.

    What has a body holds where Spark stages files in a folder beside the manifests, and where whatever has been
    acknowledged is durable. The others say what they do in its place.
    """

    concurrency: int = 1
    """The number of files the store can publish in parallel."""
    names_when_staging: bool = False
    """Whether files already have their final names when they are staged, although nobody can read them."""

    @property
    def url(self) -> str:
        """The store's URL, without a trailing slash."""

    def files(self, path: str) -> Iterator[str]:
        """Yield the files below a folder, ordered by their paths in it, without those that a reader would ignore."""
        yield from (file.path for file in self._seen(path))

    # -- loads -----------------------------------------------------------------------------------------------

    def staging(self, connector: str) -> str:
        """Return the folder to which the loads of a connector, named as a folder, write before they are committed."""
        return f"_sluice/{connector}/staging"

    def begin(self, folder: str, table: str) -> None:  # noqa: ARG002
        """Prepare a folder below :meth:`staging` for files that will be published below the folder ``table``."""
        return

    def writer_options(self, folder: str, table: str, folders: Mapping[int, str]) -> Mapping[str, str]:  # noqa: ARG002
        """Return the options of Spark's writer for files that are staged in ``folder`` and published below ``table``.

        ``folders`` are the folders below ``table`` for the output of Spark's partitions, as far as they are known
        before writing. A store with :attr:`names_when_staging` needs them; others ignore them. Where there are none,
        Spark's own committer keeps failed attempts out of the folder.
        """
        return {}

    def part_place(self, folder: str, table: str, folders: Mapping[int, str]) -> PartPlace | None:  # noqa: ARG002
        """Return where executors write files from Python; ``None`` where only Spark's writers can be used.

        The arguments are those of :meth:`writer_options`, with splits in place of Spark's partitions.
        """
        return None

    def uri(self, path: str) -> str:
        """Return the URI of a file or folder, as Spark needs it."""
        return f"{self.url}/{path}"

    def staged(self, folder: str) -> Iterator[StagedFile]:
        """Return the files that a Spark job has written into a folder, without those of failed task attempts."""
        return self._seen(folder)

    def sync_files(self, paths: Iterable[str]) -> None:  # noqa: ARG002
        """Make these staged files durable, whichever process wrote them.

        Raises :class:`FileNotFoundError` if one turns out to be gone.
        """
        return

    def publish(self, staged: str, target: str, upload: Upload | None) -> None:
        """Give a staged file its final name: a reader sees it whole or not at all, at once. Nothing is copied.

        A file that is published already stays as it is. Raises :class:`FileExistsError` if another file has that name,
        and :class:`FileNotFoundError` if the file is neither staged nor published. It is durable after
        :meth:`sync_folders`.
        """

    def sync_folders(self, paths: Iterable[str]) -> None:  # noqa: ARG002
        """Make the names in these folders, and in their parents, durable."""
        return

    def abandon(self, folder: str, check: Callable[[], None]) -> None:  # noqa: ARG002
        """Remove a folder below :meth:`staging` with everything that was begun for it, even by processes long dead.

        ``check`` raises if another driver has taken over. Whatever was found before it passes does not belong to that
        driver.
        """
        self.remove_tree(folder)

    def _seen(self, folder: str) -> Iterator[StagedFile]:
        """Yield the files below a folder that readers see, by their paths in it."""
        start = f"{folder}/" if folder else ""
        for path, size in self.below(folder):
            if is_seen(name := path.removeprefix(start)):
                yield StagedFile(name, size)


def ask_all(store: Store, question: Callable[[Q], A], about: Sequence[Q]) -> list[A]:
    """Query a store about many things at once, as far as the store allows.

    Return the answers in the order of ``about``, or raises the first error.
    """
    if store.concurrency == 1:
        # Each further thread would need its own connection to Spark's Java.
        return [question(each) for each in about]
    with ThreadPoolExecutor(store.concurrency) as threads:
        return list(threads.map(question, about))


def is_seen(name: str) -> bool:
    """Return whether readers see a file, by its path in a folder. A path that ends with ``/`` only stands for a
    folder.
    """
    return bool(name) and not name.endswith("/") and not any(part.startswith(("_", ".")) for part in name.split("/"))
