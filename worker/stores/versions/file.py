"""Versions of configurations in a file of a standalone worker.

Crash point: a new file is written, synced and renamed, so that a kill leaves the old versions or the new ones. A change
whose version was not written is recorded at the next change of its connector.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from connect.errors import ConnectError, DataError
from worker.stores.java_json import dump
from worker.stores.versions.version import MOST_VERSIONS, Version, VersionStore, document, parse

__all__ = ["FileVersionStore"]


class FileVersionStore(VersionStore):
    """Stores versions in ``file``, one JSON object per line.

    Only the worker's user may read it, because it contains secrets.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def latest(self) -> dict[str, Version]:
        return {version.seen.connector: version for version in self._read()}

    def versions(self, connector: str) -> list[Version]:
        return [version for version in self._read() if version.seen.connector == connector]

    def append(self, versions: Sequence[Version], forgotten: Sequence[Version]) -> None:
        gone = {version.seen.connector for version in forgotten}
        kept: dict[str, list[Version]] = {}
        for version in [*self._read(), *versions]:
            if version.seen.connector not in gone:
                kept.setdefault(version.seen.connector, []).append(version)
        self._write([version for of_one in kept.values() for version in of_one[-MOST_VERSIONS:]])

    def close(self) -> None:
        """Do nothing: the file is open only while it is read or written."""

    def _read(self) -> list[Version]:
        try:
            return [parse(line) for line in self._file.read_bytes().splitlines() if line]
        except FileNotFoundError:
            return []
        except (OSError, DataError) as error:
            raise ConnectError(
                f"config.history.file={self._file} cannot be read ({error}). Let the worker's user read it, or move it "
                "away to begin a new history."
            ) from error

    def _write(self, versions: Sequence[Version]) -> None:
        beside = self._file.absolute().parent / f".{self._file.name}.new"
        try:
            beside.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines(dump(document(version)) + b"\n" for version in versions)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(self._file)
        except OSError as error:
            raise ConnectError(
                f"config.history.file={self._file} cannot be written ({error}). Let the worker's user write it, or "
                "name another file."
            ) from error
