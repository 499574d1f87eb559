"""Files that tasks write to Azure from Python: uncommitted blocks of the files' final names.

An attempt at a split ends with one blob beside them that says which blocks make up a file. Nothing counts without it;
if several attempts have left one, the last counts, because all hold the same records.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from connect.internals.crash import crash_point
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.pieces import PieceStream
from connectors.spark.stores.parts import PartAttempt, PartStream
from connectors.spark.stores.store import StagedFile, Upload

__all__ = ["ATTEMPTS", "AzurePlace", "BlockUpload", "staged_files"]

ATTEMPTS: Final = "_attempts"
"""The folder for what attempts leave, below that of their load: its name hides it from whatever lists files."""
_BLOCK: Final = 16 << 20
"""The size of a block in bytes: a blob has at most 50,000 blocks."""


@dataclass(frozen=True, slots=True)
class AzurePlace:
    """The folder ``table`` of a container's prefix; what attempts leave goes to ``staging``.

    ``folders`` are the folders below ``table``, by split, where the splits have folders.
    """

    account: AzureAccount
    container: str
    prefix: str
    staging: str
    table: str
    folders: Mapping[int, str]

    def begin(self, split: int, attempt: int) -> PartAttempt:
        """Begin an attempt, whose blocks have their own ids."""
        blobs = _blobs(self.account, self.container, self.prefix)
        folder = "/".join(filter(None, (self.table, self.folders.get(split, ""))))
        return _BlockAttempt(blobs, folder, f"{self.staging}/{ATTEMPTS}/{split:06d}-{attempt:012d}.json")


class _BlockAttempt:
    def __init__(self, blobs: AzureBlobs, folder: str, note: str) -> None:
        self._blobs = blobs
        self._folder = folder
        self._note = note
        self._uploads: list[BlockUpload] = []

    def open(self, name: str) -> PartStream:
        upload = BlockUpload(self._blobs, f"{self._folder}/{name}")
        self._uploads.append(upload)
        return upload.stream

    def finish(self) -> None:
        crash_point("mid-link")
        if self._uploads:
            files = [_described(upload.staged()) for upload in self._uploads]
            self._blobs.create(self._note, json.dumps(files).encode())
        self._uploads = []

    def discard(self) -> None:
        # The service drops blocks that nobody commits.
        for upload in self._uploads:
            upload.stream.drop()


class BlockUpload:
    """A file that is sent block by block, from what is written to its ``stream``."""

    def __init__(self, blobs: AzureBlobs, target: str) -> None:
        self.stream = PieceStream(_BLOCK, self._send)
        self._blobs = blobs
        self._target = target
        self._upload = uuid.uuid4().hex
        self._parts: list[str] = []

    def staged(self) -> StagedFile:
        """Return the staged file, once the stream is closed."""
        return StagedFile(self._target, self.stream.sent, self._target, Upload(self._upload, tuple(self._parts)))

    def _send(self, block: bytes) -> None:
        # An empty file is an empty list: a block has at least one byte.
        if block:
            part = f"{len(self._parts):05d}"
            self._blobs.put_block(self._target, self._upload, part, block)
            self._parts.append(part)


def staged_files(notes: Mapping[str, bytes]) -> Iterator[StagedFile]:
    """Yield the files of the attempts that count, from the names, in order, of what attempts have left in a folder."""
    counting = {name.partition("-")[0]: content for name, content in sorted(notes.items())}
    for content in counting.values():
        for file in json.loads(content):
            upload = Upload(file["upload"], tuple(file["parts"]))
            yield StagedFile(file["target"], file["size"], file["target"], upload)


def _described(file: StagedFile) -> Mapping[str, Any]:
    assert file.upload is not None
    return {"target": file.target, "size": file.size, "upload": file.upload.id, "parts": list(file.upload.parts)}


@cache
def _blobs(account: AzureAccount, container: str, prefix: str) -> AzureBlobs:
    """Return the blobs of a store. The process keeps the client: creating one costs more than writing a small file."""
    return AzureBlobs(account, container, prefix)
