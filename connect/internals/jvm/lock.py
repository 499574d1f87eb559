"""Lock files: the jars that a part of Sluice needs, each pinned by its coordinates and SHA-256.

A lock file is text with one ``group:artifact:version[:classifier][@extension] sha256`` per line; ``#`` starts a
comment. The extension is given for archives other than jars. The file ships next to the code that needs the jars.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connect.errors import ConnectError

__all__ = ["Jar", "parse_lock", "read_lock"]

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar in a lock file: its Maven coordinates and the SHA-256 of its content."""

    group: str
    artifact: str
    version: str
    classifier: str | None
    sha256: str
    extension: str = "jar"

    @property
    def coordinates(self) -> str:
        """``group:artifact:version[:classifier][@extension]``, as in the lock file."""
        parts = ":".join(part for part in (self.group, self.artifact, self.version, self.classifier) if part)
        return parts if self.extension == "jar" else f"{parts}@{self.extension}"

    @property
    def file_name(self) -> str:
        """The file name, which Spark uses as well: ``group_artifact-version[-classifier].jar``."""
        return f"{self.group}_{self._maven_name}"

    @property
    def maven_path(self) -> Path:
        """The path of the jar in a Maven repository."""
        return Path(*self.group.split("."), self.artifact, self.version, self._maven_name)

    @property
    def _maven_name(self) -> str:
        parts = "-".join(part for part in (self.artifact, self.version, self.classifier) if part)
        return f"{parts}.{self.extension}"


def read_lock(path: Path) -> tuple[Jar, ...]:
    """Return the jars of the lock file at ``path``, in order."""
    return parse_lock(path.read_text(encoding="utf-8"), str(path))


def parse_lock(text: str, name: str = "lock file") -> tuple[Jar, ...]:
    """Return the jars in a lock file's ``text``; errors show ``name`` as the name of the file."""
    jars: dict[str, Jar] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        jar = _parse_line(words, f"{name}, line {number}")
        if jar.file_name in jars:
            raise ConnectError(f"{name}, line {number}: {jar.coordinates} is listed twice; remove one line.")
        jars[jar.file_name] = jar
    return tuple(jars.values())


def _parse_line(words: Sequence[str], place: str) -> Jar:
    names, at, extension = words[0].partition("@")
    coordinates = names.split(":")
    if len(words) != 2 or len(coordinates) not in {3, 4} or not all(coordinates) or bool(at) != bool(extension):
        form = "group:artifact:version[:classifier][@extension] sha256"
        raise ConnectError(f"{place}: '{' '.join(words)}' is not of the form '{form}'; correct the line.")
    if _SHA256.fullmatch(words[1]) is None:
        raise ConnectError(f"{place}: '{words[1]}' is not a SHA-256 in 64 lower-case hexadecimal digits.")
    group, artifact, version, *classifier = coordinates
    return Jar(group, artifact, version, classifier[0] if classifier else None, words[1], extension or "jar")
