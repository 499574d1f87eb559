"""Pinned jars in a folder below ``SLUICE_HOME``, downloaded if missing.

A missing jar is copied from the local Maven repository if its checksum matches, and otherwise downloaded from the
repository that ``connect.internals.jvm.repository`` finds. ``connect.internals.jvm.lock`` reads the lists of jars.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock
from connect.internals.jvm.lock import Jar, read_lock
from connect.internals.jvm.repository import Repository, find_repository, local_repository

__all__ = ["Jar", "read_lock", "resolve_jars"]


def resolve_jars(jars: Sequence[Jar], *, home: Path, environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the paths of ``jars`` in ``home``/jars, in order, after fetching missing ones.

    Symbolic links in ``home`` are resolved, because a class data archive is tied to the paths of its jars. Any number
    of processes may call this at once: one downloads, the others wait.
    """
    folder = (home / "jars").resolve()
    if any(not _is_verified(folder, jar) for jar in jars):
        with file_lock(folder / ".lock"):
            _fill(folder, jars, environ)
    return tuple(folder / jar.file_name for jar in jars)


def _fill(folder: Path, jars: Sequence[Jar], environ: Mapping[str, str]) -> None:
    local = local_repository(environ)
    missing = [jar for jar in jars if not _is_verified(folder, jar) and not _adopt(folder, jar, local)]
    if not missing:
        return
    from connect.internals.jvm.download import download  # noqa: PLC0415 - requests is slow to import, and seldom needed

    repository = find_repository(environ)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        staging = Path(name)
        download(missing, repository, staging)
        for jar in missing:
            _check(staging / jar.file_name, jar, repository)
            _install(staging / jar.file_name, folder, jar)


def _adopt(folder: Path, jar: Jar, local: Path) -> bool:
    """Use the jar if it is in the folder and only its marker is missing, or else copy it from the local repository."""
    here, there = folder / jar.file_name, local / jar.maven_path
    if here.is_file() and _digest(here) == jar.sha256:
        _mark(folder, jar)
        return True
    if not there.is_file() or _digest(there) != jar.sha256:
        return False
    with tempfile.TemporaryDirectory(dir=folder, prefix=".copy-") as name:
        copy = Path(name) / jar.file_name
        shutil.copyfile(there, copy)
        if _digest(copy) != jar.sha256:
            return False
        _install(copy, folder, jar)
    return True


def _check(path: Path, jar: Jar, repository: Repository) -> None:
    found = _digest(path)
    if found != jar.sha256:
        raise ConnectError(
            f"{jar.coordinates} from {repository} is not the jar that is pinned: its SHA-256 should be "
            f"{jar.sha256} and is {found}. Do not use it; find out what the repository or a proxy did to it."
        )


def _install(path: Path, folder: Path, jar: Jar) -> None:
    path.replace(folder / jar.file_name)
    _mark(folder, jar)


def _mark(folder: Path, jar: Jar) -> None:
    marker = _marker(folder, jar)
    partial = marker.with_name(marker.name + ".partial")
    partial.write_text(f"{jar.sha256} {(folder / jar.file_name).stat().st_size}\n", encoding="ascii")
    partial.replace(marker)


def _is_verified(folder: Path, jar: Jar) -> bool:
    """Return whether the jar was verified when it was fetched and still has its size; its content is not read again."""
    try:
        size = (folder / jar.file_name).stat().st_size
        return _marker(folder, jar).read_text(encoding="ascii").split() == [jar.sha256, str(size)]
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _marker(folder: Path, jar: Jar) -> Path:
    return folder / f"{jar.file_name}.sha256"


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
