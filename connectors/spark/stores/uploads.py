"""Files that the tasks of Spark write to S3 from their Python: uploads that are not completed, as S3A leaves them.

Beside them an attempt leaves the notes that S3A and ``sluice.StagingCommitter`` leave: a ``.pending`` file for each
upload, and at its end one that says that the attempt counts. So :class:`~connectors.spark.stores.s3.S3Store` finds
them, completes them or aborts them, whoever has written them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from connectors.spark.stores.objects import Objects, Service, client_for
from connectors.spark.stores.parts import PartAttempt, PartStream

__all__ = ["UploadPlace"]


@dataclass(frozen=True, slots=True)
class UploadPlace:
    """The folder ``table`` of a prefix of a bucket; what describes its uploads is in ``staging``.

    ``folders`` are the folders below ``table`` by split, where there are some.
    """

    service: Service
    bucket: str
    prefix: str
    staging: str
    table: str
    folders: Mapping[int, str]
    part_size: int

    def begin(self, split: int, attempt: int) -> PartAttempt:
        """An attempt with uploads of its own; of several that are finished the last one counts."""
        folder = "/".join(filter(None, (self.table, self.folders.get(split, ""))))
        name = f"attempt_0_0000_m_{split:06d}_{attempt}"
        return _UploadAttempt(_objects(self.service, self.bucket, self.prefix), self, folder, name)


class _UploadAttempt:
    def __init__(self, objects: Objects, place: UploadPlace, folder: str, name: str) -> None:
        self._objects = objects
        self._place = place
        self._folder = folder
        self._name = name
        self._streams: list[_UploadStream] = []

    def open(self, name: str) -> PartStream:
        stream = _UploadStream(self._objects, f"{self._folder}/{name}", self._place.part_size)
        self._streams.append(stream)
        return stream

    def finish(self) -> None:
        staging, objects = self._place.staging, self._objects
        for stream in self._streams:
            described = f"{staging}/{self._name}/__base/{stream.path}.pending"
            objects.put(described, json.dumps(stream.description()).encode())
        if self._streams:
            objects.put(f"{staging}/committed/{self._name}.pendingset", self._name.encode())
        self._streams = []

    def discard(self) -> None:
        for stream in self._streams:
            # What cannot be aborted now is with the whole load.
            with suppress(Exception):
                stream.abort()


class _UploadStream:
    """A file whose bytes are sent part by part."""

    def __init__(self, objects: Objects, path: str, part_size: int) -> None:
        self.path = path
        self.closed = False
        self._objects = objects
        self._part_size = part_size
        self._upload = objects.begin_upload(path)
        self._tags: list[str] = []
        self._sent = 0
        self._waiting = bytearray()

    def write(self, data: Any, /) -> int:
        if self.closed:
            return len(data)
        self._waiting += data
        while len(self._waiting) >= self._part_size:
            self._send(self._part_size)
        return len(data)

    def tell(self) -> int:
        return self._sent + len(self._waiting)

    def flush(self) -> None:
        """Nothing: parts have a size."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self._waiting or not self._tags:
                self._send(len(self._waiting))

    def abort(self) -> None:
        """Give it up; what is written from now on goes nowhere."""
        self.closed = True
        self._objects.abort(self.path, self._upload)

    def description(self) -> Mapping[str, Any]:
        """What S3A notes of such an upload, as far as it is read."""
        key = self._objects.key(self.path)
        return {"uploadId": self._upload, "destinationKey": key, "etags": self._tags, "length": self._sent}

    def _send(self, size: int) -> None:
        part = bytes(self._waiting[:size])
        del self._waiting[:size]
        self._tags.append(self._objects.upload_part(self.path, self._upload, len(self._tags) + 1, part))
        self._sent += size


@cache
def _objects(service: Service, bucket: str, prefix: str) -> Objects:
    """The objects of a store, by a client that the process keeps: making one costs more than a small file does."""
    return Objects(client_for(service), bucket, prefix)
