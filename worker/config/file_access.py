"""Decides which files a connector's configuration may name: not the worker's own, and only allowed schema files.

A configuration comes from whoever reaches the REST API, and the datagen connector reads the file that its
configuration names (``datagen.allowed.paths``). The rule is that of the config providers that read files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from connect.errors import ConfigError, ConnectError
from connect.providers.file import AllowedPaths
from worker.security.login_file import EXTENSIONS_KEY, LOGIN_CONFIG_KEY, users_file

__all__ = ["SCHEMA_PATHS_KEY", "WORKER_FILE", "own_files", "refused_schema_file"]

WORKER_FILE: Final = "sluice.worker.file"
"""The key under which the processes of a worker find the path of its file. It is not a key of that file."""

SCHEMA_PATHS_KEY: Final = "datagen.allowed.paths"
"""The worker's key with the folders of schema files."""

_DATAGEN: Final = "connectors.datagen."
_FILE: Final = "schema.filename"
_RELATIVE: Final = ("file", "filename", "location")
_PATH: Final = re.compile(r"""(?:^|(?<=[\s"'=,;]))/[^\s"',;]+""")
# Values for the worker and for connectors may be in the same file.
_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")


def own_files(worker: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the worker's file and every file it names: key stores, offsets, tokens, the keytab of a login module.

    Folders, such as those of plugins, are left out.
    """
    named = [path for key, value in worker.items() for path in _named(key, _REFERENCE.sub("", value))]
    found = dict.fromkeys([*named, *_of_users(worker)])
    return tuple(path for path in found if not _is_folder(path))


def _named(key: str, value: str) -> Iterator[Path]:
    if key.endswith(_RELATIVE) and value.strip() and "\0" not in value and "\n" not in value:
        yield Path(value.strip())
    yield from (Path(match[0]) for match in _PATH.finditer(value))


def _of_users(worker: Mapping[str, str]) -> Iterator[Path]:
    """Yield the file of users, which the JAAS file names."""
    if worker.get(EXTENSIONS_KEY):
        with suppress(ConfigError):
            yield users_file(worker.get(LOGIN_CONFIG_KEY), os.environ)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def refused_schema_file(
    worker: Mapping[str, str], connector_class: str, props: Mapping[str, str]
) -> Iterator[ConfigError]:
    """Yield an error if ``props`` name a schema file that the worker's file does not allow connectors to read."""
    name = props.get(_FILE)
    if not name or not connector_class.startswith(_DATAGEN):
        return
    allowed = [path.strip() for path in worker.get(SCHEMA_PATHS_KEY, "").split(",") if path.strip()]
    try:
        AllowedPaths(allowed, own_files(worker)).resolve(name)
    except ConnectError:
        where = f"in {' or '.join(allowed)}" if allowed else "that belongs neither to the worker nor to the system"
        yield ConfigError(_FILE, name, f"Name a file {where}, or have the worker's {SCHEMA_PATHS_KEY} changed")
