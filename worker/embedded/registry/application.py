"""The registry's application: an archive that is downloaded and unpacked once."""

from __future__ import annotations

import os
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock
from connect.internals.jvm.jars import Jar, read_lock, resolve_jars

__all__ = ["application_jar", "registry_archive", "unpacked"]

_LOCK = Path(__file__).with_name("registry.jars")
_MAIN = "quarkus-run.jar"


def registry_archive() -> Jar:
    """Return the pinned archive."""
    (archive,) = read_lock(_LOCK)
    return archive


def application_jar(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the jar to start, in ``home``/applications, after downloading and unpacking it if it is missing."""
    archive = registry_archive()
    (path,) = resolve_jars([archive], home=home, environ=environ)
    return unpacked(path, home / "applications" / f"{archive.artifact}-{archive.version}-{archive.sha256[:12]}") / _MAIN


def unpacked(archive: Path, folder: Path) -> Path:
    """Return ``folder`` with the content of ``archive``, even if others unpack it or were killed doing so."""
    if folder.is_dir():
        return folder
    with file_lock(folder.parent / ".lock"):
        if folder.is_dir():
            return folder
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpack-") as name:
            staging = Path(name) / folder.name
            try:
                with tarfile.open(archive) as content:
                    content.extractall(staging, filter="data")
            except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
                raise ConnectError(f"Cannot unpack {archive} into {folder.parent}: {error}") from error
            staging.replace(folder)
    return folder
