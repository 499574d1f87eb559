"""The archive of the classes that Spark loads (Java's AppCDS): with it Spark starts in half the time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.java import Java, find_java
from equipment.scripts import spark_archive

__all__ = ["ARCHIVE_OPTIONS", "make_archive"]

_MAKER: Final = Path(spark_archive.__file__)
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


# An archive is valid only for jars in this location.
_ARCHIVE: Final = sluice_home() / "tests" / f"spark-{version('pyspark')}-{_digest(sys.prefix)}.jsa"
ARCHIVE_OPTIONS: Final = f"-XX:SharedArchiveFile={_ARCHIVE} {_QUIET}"
"""The Java options to use the archive, if there is one that fits."""


@cache
def make_archive(java_options: str) -> None:
    """Begin to create the archive for JVMs with these options, unless it exists; it is stored in Sluice's home.

    Nothing waits for it: a JVM that starts earlier does without. The process that creates it may outlive this one.
    """
    wanted = _made_for(find_java(minimum=17), java_options)
    made_for = _ARCHIVE.with_suffix(".for")
    _ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    with _ARCHIVE.with_suffix(".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if _ARCHIVE.is_file() and made_for.is_file() and made_for.read_text() == wanted:
            return
        _ARCHIVE.unlink(missing_ok=True)
        made_for.write_text(wanted)
        # It continues in the background, and holds the lock as long as it runs.
        subprocess.run(
            [sys.executable, str(_MAKER), str(_ARCHIVE), f"{java_options} {_QUIET}"],
            env={key: value for key, value in os.environ.items() if key != "SPARK_SUBMIT_OPTS"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[lock.fileno()],
            start_new_session=True,
            check=False,
        )


def _made_for(java: Java, java_options: str) -> str:
    release = java.home / "release"
    return _digest(str(java.home), release.read_text() if release.is_file() else "", java_options)
