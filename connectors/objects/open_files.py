"""Files that are being written: their bytes are collected, sent in parts, and become visible when they are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from connect.data import Schema, SinkBatch
from connect.internals.crash import crash_point
from connect.kits.objects.staged import Staged
from connect.kits.objects.store import ObjectStore
from connect.kits.objects.uploads import Upload, UploadSettings, begin_upload
from connectors.objects.record_views import RecordView

__all__ = ["FileGroup", "Uploads"]


@dataclass(frozen=True, slots=True)
class Uploads:
    """What files are sent with: the store, the threads that send, and the size from which on they do."""

    store: ObjectStore
    settings: UploadSettings
    threads: Executor
    part_bytes: int
    tags: Mapping[str, str] | None
    stages: bool = False
    """Whether files are staged, and not finished."""

    def begin(self, path: str) -> Upload:
        """Begin an upload."""
        return begin_upload(self.store, path, self.settings, stages=self.stages)


class _OpenFile:
    """One file: the writer of its format, and the bytes that were not sent yet."""

    def __init__(self, uploads: Uploads, view: RecordView, schema: Schema | None, path: str) -> None:
        self.path = path
        self._uploads = uploads
        self._upload = uploads.begin(path)
        self._waiting = bytearray()
        self._sending: tuple[Future[None], int] | None = None
        self._writer = view.format.writer(self._waiting.extend, schema, path)

    @property
    def held(self) -> int:
        """The bytes in memory."""
        under_way = 0 if self._sending is None or self._sending[0].done() else self._sending[1]
        return len(self._waiting) + self._writer.held + under_way

    def write(self, column: Any) -> int:
        """Write a column, send a part if there is one, and return the number of bytes that were added."""
        before = len(self._waiting) + self._writer.held
        self._writer.write(column)
        added = len(self._waiting) + self._writer.held - before
        while len(self._waiting) >= self._uploads.part_bytes:
            self.send(self._uploads.part_bytes)
        return added

    def send(self, least: int) -> None:
        """Send what waits, if it is at least so much; one part at a time is under way."""
        if len(self._waiting) < least:
            return
        self._settle()
        part = self._taken()
        self._sending = self._uploads.threads.submit(self._send, part), len(part)

    def finish(self, tags: Mapping[str, str]) -> None:
        """Send the rest. Called by a thread that publishes."""
        self._close()
        self._upload.finish(self._waiting, tags)
        self._waiting = bytearray()

    def stage(self) -> Staged:
        """Send the rest, and leave it to others to publish the file."""
        self._close()
        staged = self._upload.stage(self._waiting)
        self._waiting = bytearray()
        return staged

    def _close(self) -> None:
        self._settle()
        self._writer.close()
        while len(self._waiting) > 2 * self._uploads.part_bytes:
            self._upload.send(self._taken())

    def discard(self) -> None:
        """Give the file up."""
        if self._sending is not None and not self._sending[0].cancel():
            self._sending[0].exception()
        self._upload.discard()

    def _taken(self) -> bytes:
        """Return the next part, which waits no longer."""
        with memoryview(self._waiting) as waiting:
            part = bytes(waiting[: self._uploads.part_bytes])
        del self._waiting[: len(part)]
        return part

    def _send(self, part: bytes) -> None:
        self._upload.send(part)
        crash_point("objects-after-part")

    def _settle(self) -> None:
        if self._sending is not None:
            sending, self._sending = self._sending, None
            sending[0].result()


class FileGroup:
    """The files of the same records: the values, and beside them their keys and headers."""

    def __init__(self, uploads: Uploads, views: Sequence[RecordView], first: SinkBatch, paths: Sequence[str]) -> None:
        self._uploads = uploads
        self._views = views
        columns = [view.column(first.slice(0, 1)) for view in views]
        self._files = [
            _OpenFile(uploads, view, column.schema, path)
            for view, column, path in zip(views, columns, paths, strict=True)
        ]
        self.first = first.original_offsets[0]
        self.last = self.first
        self.records = 0
        self.held = 0

    @property
    def paths(self) -> Sequence[str]:
        """The paths of the files."""
        return [file.path for file in self._files]

    def write(self, batch: SinkBatch) -> int:
        """Write records to all files, or raise :class:`~connect.errors.DataError` and write to none; return the number
        of bytes.
        """
        columns = [view.column(batch) for view in self._views]
        for view, column in zip(self._views[1:], columns[1:], strict=True):
            # What is beside the values must not fail after these were written.
            view.format.writer(_nowhere, column.schema, "").write(column)
        added = sum(file.write(column) for file, column in zip(self._files, columns, strict=True))
        self.records += len(batch)
        self.last = batch.original_offsets[-1]
        self.held = sum(file.held for file in self._files)
        return added

    def send_early(self, least: int) -> None:
        """Send what waits in memory, where it is enough for a part."""
        for file in self._files:
            file.send(least)
        self.held = sum(file.held for file in self._files)

    def finish(self) -> None:
        """Make the files visible: the values last, so that whoever sees them finds the others."""
        tags: Mapping[str, str] = {}
        if self._uploads.tags is not None:
            own = {"startOffset": self.first, "endOffset": self.last, "recordCount": self.records}
            tags = {**self._uploads.tags, **{name: str(number) for name, number in own.items()}}
        for file in reversed(self._files):
            file.finish(tags)
            crash_point("objects-after-file")

    def stage(self) -> list[Staged]:
        """Send the files whole; those with the values come last, so that they are published last."""
        return [file.stage() for file in reversed(self._files)]

    def discard(self) -> None:
        """Give the files up."""
        for file in self._files:
            file.discard()


class KeyFile:
    """The file of one key, which has the last record of it."""

    def __init__(self, uploads: Uploads, view: RecordView, path: str) -> None:
        self._uploads = uploads
        self._view = view
        self._path = path
        self._data = b""
        self.paths = [path]
        self.held = 0

    def write(self, batch: SinkBatch) -> int:
        """Take the last of some records; return by how many bytes the file has grown."""
        content = bytearray()
        column = self._view.column(batch.slice(len(batch) - 1, len(batch)))
        writer = self._view.format.writer(content.extend, column.schema, self._path)
        writer.write(column)
        writer.close()
        grown, self._data, self.held = len(content) - self.held, bytes(content), len(content)
        return max(grown, 0)

    def send_early(self, least: int) -> None:
        """Do nothing: another record may follow."""

    def finish(self) -> None:
        """Make the file visible."""
        self._uploads.begin(self._path).finish(self._data, self._uploads.tags or {})
        crash_point("objects-after-file")

    def discard(self) -> None:
        """Do nothing: nothing was sent."""


def _nowhere(_: bytes) -> None:
    """Take bytes that nobody needs."""
