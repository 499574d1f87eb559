"""The files that a worker needs for itself, which no connector's configuration may read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from connect.errors import ConfigError
from worker.security.login_file import EXTENSIONS_KEY, LOGIN_CONFIG_KEY, users_file

__all__ = ["WORKER_FILE", "own_files"]

WORKER_FILE: Final = "sluice.worker.file"
"""The key under which the processes of a worker find the path of its file. It is not a key of that file."""

_RELATIVE: Final = ("file", "filename", "location")
_PATH: Final = re.compile(r"""(?:^|(?<=[\s"'=,;]))/[^\s"',;]+""")
# What a worker refers to may be in one file with what connectors refer to.
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")


def own_files(worker: Mapping[str, str]) -> tuple[Path, ...]:
    """The worker's file and every file that it names: key stores, offsets, tokens, the key tab of a login module.

    Folders are left out, such as those of plugins.
    """
    named = [path for key, value in worker.items() for path in _named(key, _REFERENCE.sub("", value))]
    found = dict.fromkeys([*named, *_of_users(worker)])
    return tuple(path for path in found if not _is_folder(path))


def _named(key: str, value: str) -> Iterator[Path]:
    if key.endswith(_RELATIVE) and value.strip() and "\0" not in value and "\n" not in value:
        yield Path(value.strip())
    yield from (Path(match[0]) for match in _PATH.finditer(value))


def _of_users(worker: Mapping[str, str]) -> Iterator[Path]:
    """The file of users, which another file names."""
    if worker.get(EXTENSIONS_KEY):
        with suppress(ConfigError):
            yield users_file(worker.get(LOGIN_CONFIG_KEY), os.environ)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
