"""An archive of the classes that JVMs of one kind load, from which they start with less CPU and memory.

A JVM has it made when it finds none: some time after its start, by a process of low priority, with the classes that it
has loaded by then. Those that start later use it. Killed while it is written, it has no name yet.
"""

from __future__ import annotations

import atexit
import contextvars
import hashlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connect.internals.jvm.home import file_lock
from connect.internals.jvm.java import Java

__all__ = ["ClassArchive", "class_archive", "class_names", "has_room"]

logger = logging.getLogger(__name__)

_END: Final = ".jsa"
_MOST_ARCHIVES: Final = 4
_SETTLE_SECONDS: Final = 30.0
"""When so many seconds have passed, the first task has loaded what it needs to move records."""
_NICE: Final = 19
_LONGEST_SECONDS: Final = 900.0
_LEFT_BEHIND_SECONDS: Final = 3600.0
"""What was not finished in so long was left behind by a process that was killed."""
_ROOM_BYTES: Final = 512 * 1024 * 1024
"""About twice of what the process that makes an archive takes."""
_SAID: Final = 2000
_CLASS: Final = re.compile(r"(?:[|\s]*--)?(?P<name>[^/\s]+)/(?:null|0x[0-9a-f]+)(?: \(intf\))?")
_GENERATED: Final = re.compile(r"\$\$|\$Proxy\d|\.Generated\w+Accessor\d")
_IN_PLACE: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Have an archive mapped where it was made for: elsewhere a JVM changes nearly all of its pages, and shares none.

A Java that does not know this makes no archive.
"""
_QUIET: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_NOT_FOR_ARCHIVES: Final = ("-Xlog", "-Xrun", "-Xdebug", "-Xshare", "-XX:SharedArchiveFile")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive at ``path`` for a Java and the jars of a class path.

    ``options`` are those of the JVM that matter to it.
    """

    path: Path
    java: Java
    jars: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def is_made(self) -> bool:
        """Whether it is there."""
        return self.path.is_file()

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of a JVM that starts from it; one that it does not fit starts without it."""
        return (f"-XX:SharedArchiveFile={self.path}", *_IN_PLACE, *_QUIET) if self.is_made else ()

    def make_later(self, hierarchy: Callable[[], str | None]) -> None:
        """Have it made in a while of what the JVM answers to ``VM.class_hierarchy`` then, unless that is nothing."""
        if self.is_made:
            return

        def make() -> None:
            threading.Event().wait(_SETTLE_SECONDS)
            if has_room() and (answer := hierarchy()) is not None:
                self.make(class_names(answer))

        # Its threads are none of the unit's that happens to ask.
        contextvars.Context().run(threading.Thread(target=make, name="class archive", daemon=True).start)

    def make(self, classes: Sequence[str]) -> None:
        """Make it of these classes, unless another process has. What fails is logged: JVMs start without it, too."""
        try:
            with file_lock(self.path.with_suffix(".lock")):
                if not self.is_made:
                    self._write(classes)
        except (OSError, subprocess.SubprocessError) as error:
            logger.info("JVMs go on to start without an archive of classes: %s", error)

    def _write(self, classes: Sequence[str]) -> None:
        prefix = f".{self.path.stem}-"
        for left in self.path.parent.glob(f"{prefix}*"):
            # Its process was killed: whoever writes this archive holds the lock.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=prefix) as name:
            names, partial = Path(name) / "classes", Path(name) / self.path.name
            names.write_text("".join(f"{each}\n" for each in classes), encoding="utf-8")
            said = self._run(
                [
                    *("nice", "-n", str(_NICE), str(self.java.executable), *self.options, *_IN_PLACE),
                    "-Xshare:dump",
                    *(f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={partial}", *_QUIET),
                    *("-cp", os.pathsep.join(self.jars)),
                ],
                name,
            )
            if not partial.is_file():
                raise OSError(f"{self.java.executable} wrote none: {said[-_SAID:].strip()}")
            partial.replace(self.path)
        self._remove_old()

    @staticmethod
    def _run(command: Sequence[str], folder: str) -> str:
        """Return what a command prints in a folder; it does not outlive this process."""
        with subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            atexit.register(process.kill)
            try:
                return process.communicate(timeout=_LONGEST_SECONDS)[0]
            finally:
                process.kill()
                atexit.unregister(process.kill)

    def _remove_old(self) -> None:
        prefix = f"{self.path.stem.rpartition('-')[0]}-"
        found = sorted(self.path.parent.glob(f"{prefix}*{_END}"), key=_age)
        for old in found[_MOST_ARCHIVES:]:
            old.unlink(missing_ok=True)
            old.with_suffix(".lock").unlink(missing_ok=True)
        for left in self.path.parent.glob(f".{prefix}*"):
            if _age(left) > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def class_archive(
    home: Path, java: Java, jars: Sequence[Path], options: Sequence[str], kind: str = "runtime"
) -> ClassArchive:
    """Return the archive below ``home`` for a Java, the jars of its class path, and the options of a JVM.

    Only so many of a ``kind`` are kept.
    """
    own = tuple(option for option in options if option.startswith("-X") and not option.startswith(_NOT_FOR_ARCHIVES))
    key = hashlib.sha256("\n".join(_key(java, jars, own)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    path = (home / "archives").absolute() / f"{kind}-{key}{_END}"
    return ClassArchive(path, java, tuple(map(str, jars)), own)


def has_room(cgroup: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return whether the process that makes an archive fits into the memory of the container, if that is limited."""
    try:
        limit, used = ((cgroup / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return limit == "max" or int(limit) - int(used) >= _ROOM_BYTES
    except (OSError, ValueError):
        return True


def class_names(hierarchy: str) -> list[str]:
    """Return the classes in the answer of a JVM to ``VM.class_hierarchy``, without those that it has made itself."""
    found = (_CLASS.fullmatch(line) for line in hierarchy.splitlines())
    names = {match["name"] for match in found if match is not None}
    return sorted(name.replace(".", "/") for name in names if not _GENERATED.search(name))


def _key(java: Java, jars: Sequence[Path], options: Sequence[str]) -> Iterator[str]:
    """Yield all that an archive depends on: a JVM refuses one whose jars were written anew."""
    yield from (str(java.home), str(java.version), *options)
    with suppress(OSError):
        yield (java.home / "release").read_text(encoding="utf-8", errors="replace")
    for jar in jars:
        found = jar.stat()
        yield f"{jar} {found.st_size} {found.st_mtime_ns}"


def _age(path: Path) -> float:
    """Return the seconds since a file or folder was written; none if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
