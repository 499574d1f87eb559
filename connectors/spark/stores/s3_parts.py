"""Files that Spark's tasks write to S3 from Python: incomplete uploads, in the form S3A leaves them.

Beside them, an attempt leaves the same notes as S3A and ``sluice.StagingCommitter``: a ``.pending`` file for each
upload, and at its end one that says that the attempt counts. So :class:`~connectors.spark.stores.s3.S3Store` finds the
uploads and completes or aborts them, no matter who has written them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from connect.kits.objects.pieces import PieceStream
from connect.kits.objects.s3 import S3Account, S3Objects, S3Writer
from connectors.spark.stores.parts import PartAttempt, PartStream

__all__ = ["ObjectFolder", "UploadPlace"]


@dataclass(frozen=True, slots=True)
class UploadPlace:
    """The folder ``table`` of a bucket's prefix; the descriptions of its uploads go to ``staging``.

    ``folders`` are the folders below ``table``, by split, where the splits have folders.
    """

    account: S3Account
    bucket: str
    prefix: str
    staging: str
    table: str
    folders: Mapping[int, str]
    part_size: int

    def begin(self, split: int, attempt: int) -> PartAttempt:
        """Begin an attempt with its own uploads; if several are finished, the last one counts."""
        folder = "/".join(filter(None, (self.table, self.folders.get(split, ""))))
        name = f"attempt_0_0000_m_{split:06d}_{attempt}"
        return _UploadAttempt(_objects(self.account, self.bucket, self.prefix), self, folder, name)


class _UploadAttempt:
    def __init__(self, objects: S3Objects, place: UploadPlace, folder: str, name: str) -> None:
        self._objects = objects
        self._place = place
        self._folder = folder
        self._name = name
        self._uploads: list[_Upload] = []

    def open(self, name: str) -> PartStream:
        upload = _Upload(self._objects, f"{self._folder}/{name}", self._place.part_size)
        self._uploads.append(upload)
        return upload.stream

    def finish(self) -> None:
        staging, objects = self._place.staging, self._objects
        for upload in self._uploads:
            described = f"{staging}/{self._name}/__base/{upload.path}.pending"
            objects.put(described, json.dumps(upload.description()).encode())
        if self._uploads:
            objects.put(f"{staging}/committed/{self._name}.pendingset", self._name.encode())
        self._uploads = []

    def discard(self) -> None:
        for upload in self._uploads:
            # What cannot be aborted now is aborted with the whole load.
            with suppress(Exception):
                upload.abort()


class _Upload:
    """A file that is sent part by part, from what is written to its ``stream``."""

    def __init__(self, objects: S3Objects, path: str, part_size: int) -> None:
        self.path = path
        self.stream = PieceStream(part_size, self._send)
        self._objects = objects
        self._upload = objects.begin_upload(path)
        self._tags: list[str] = []

    def abort(self) -> None:
        """Abort the upload; further writes are dropped."""
        self.stream.drop()
        self._objects.abort(self.path, self._upload)

    def description(self) -> Mapping[str, Any]:
        """S3A's description of such an upload, as far as it is read back."""
        key = self._objects.key(self.path)
        return {"uploadId": self._upload, "destinationKey": key, "etags": self._tags, "length": self.stream.sent}

    def _send(self, part: bytes) -> None:
        self._tags.append(self._objects.upload_part(self.path, self._upload, len(self._tags) + 1, part))


@dataclass(frozen=True, slots=True)
class ObjectFolder:
    """A folder of a bucket whose objects a table names; a :class:`~connectors.spark.stores.parts.DataPlace`."""

    account: S3Account
    bucket: str
    folder: str
    part_size: int

    def begin(self, split: int, attempt: int) -> PartAttempt:  # noqa: ARG002
        """Begin an attempt whose objects exist at its end."""
        return _ObjectAttempt(_objects(self.account, self.bucket, self.folder), self.part_size)

    def names(self, mark: str) -> list[str]:
        """Return the objects whose names begin with a mark."""
        return _objects(self.account, self.bucket, self.folder).beginning(f"{mark}-")


class _ObjectAttempt:
    def __init__(self, objects: S3Objects, part_size: int) -> None:
        self._objects = objects
        self._part_size = part_size
        self._written: list[S3Writer] = []

    def open(self, name: str) -> PartStream:
        written = S3Writer(self._objects, name, self._part_size)
        self._written.append(written)
        return written.stream

    def finish(self) -> None:
        for written in self._written:
            written.complete()
        self._written = []

    def discard(self) -> None:
        for written in self._written:
            # What cannot be removed now is left to table maintenance.
            with suppress(Exception):
                written.remove()


@cache
def _objects(account: S3Account, bucket: str, prefix: str) -> S3Objects:
    """Return the objects of a store. The process keeps the client: creating one costs more than writing a small
    file.
    """
    return S3Objects(account, bucket, prefix)
