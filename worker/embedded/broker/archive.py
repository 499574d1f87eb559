"""Class data archives, which let a broker start in a second.

The first broker that is stopped in an orderly way leaves an archive of the classes it loaded: AppCDS, from Java 25 on
the AOT cache. Later brokers with the same Java and jars start from it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connect.internals.jvm.java import Java

__all__ = ["ClassArchive", "class_archive", "keep_archive"]

_AOT_CACHE_SINCE = 25
_PREFIX = "broker-"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive at ``path`` or, if it does not exist yet, the one being created as ``partial``."""

    path: Path
    partial: Path | None
    flags: tuple[str, ...]


def class_archive(folder: Path, java: Java, arguments: Sequence[str]) -> ClassArchive:
    """Return the archive in ``folder`` for ``java`` and its ``arguments``, with the JVM flags that use or create it."""
    aot = java.version >= _AOT_CACHE_SINCE
    path = folder / f"{_PREFIX}{_key(java, arguments)}.{'aot' if aot else 'jsa'}"
    if path.is_file():
        return ClassArchive(path, None, (f"-XX:{'AOTCache' if aot else 'SharedArchiveFile'}={path}",))
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{path.name}.{uuid.uuid4().hex}"
    return ClassArchive(path, partial, (f"-XX:{'AOTCacheOutput' if aot else 'ArchiveClassesAtExit'}={partial}",))


def keep_archive(partial: Path, path: Path) -> None:
    """Move the archive that a stopped broker left into place, and remove those of other Javas and jars."""
    if not partial.is_file():
        return
    partial.replace(path)
    for other in path.parent.glob(_PREFIX + "*"):
        if other != path:
            other.unlink(missing_ok=True)


def _key(java: Java, arguments: Sequence[str]) -> str:
    release = java.home / "release"
    build = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    text = "\n".join((str(java.home), str(java.version), build, *arguments))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
