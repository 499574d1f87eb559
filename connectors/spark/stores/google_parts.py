"""Files that Spark's tasks write to Google Cloud Storage from Python: named at the end of an attempt."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from connect.internals.crash import crash_point
from connect.kits.objects.gcs import GoogleAccount, GoogleObjects
from connectors.spark.stores.parts import PartAttempt, PartStream

__all__ = ["GooglePlace"]


@dataclass(frozen=True, slots=True)
class GooglePlace:
    """A folder of a bucket. If two attempts finish, the files of the first stay.

    Both have the same rows in the same files, so if an attempt is killed between two names, the next one completes it.
    """

    account: GoogleAccount
    bucket: str
    prefix: str
    folder: str

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """Begin an attempt that writes to its own hidden names."""
        return _GoogleAttempt(_objects(self.account, self.bucket, self.prefix), self.folder, attempt)


class _GoogleAttempt:
    def __init__(self, objects: GoogleObjects, folder: str, attempt: int) -> None:
        self._objects = objects
        self._folder = folder
        self._attempt = attempt
        self._written: list[tuple[str, str]] = []
        self._streams: list[Any] = []

    def open(self, name: str) -> PartStream:
        beside = f"{self._folder}/.{name}.{self._attempt}"
        stream: PartStream = self._objects.writer(beside)
        self._written.append((beside, f"{self._folder}/{name}"))
        self._streams.append(stream)
        return stream

    def finish(self) -> None:
        for beside, path in self._written:
            with suppress(FileExistsError):
                self._objects.copy_if_absent(beside, path)
            crash_point("mid-link")
        self._objects.remove_all(beside for beside, _ in self._written)
        self._written, self._streams = [], []

    def discard(self) -> None:
        # What cannot be removed now is removed with the whole load.
        for stream in self._streams:
            with suppress(Exception):
                stream.terminate()
        with suppress(Exception):
            self._objects.remove_all(beside for beside, _ in self._written)


@cache
def _objects(account: GoogleAccount, bucket: str, prefix: str) -> GoogleObjects:
    """Return the objects of a store. The process keeps the client: creating one costs more than writing a small
    file.
    """
    return GoogleObjects(account, bucket, prefix)
