"""The files of schemas that connectors may have read: ``datagen.allowed.paths``.

The datagen connector reads the file that its configuration names, and a configuration comes from whoever reaches the
REST API. The rule is that of the config providers, which read files likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.errors import ConfigError, ConnectError
from connect.providers.file import AllowedPaths
from worker.config.file_access import own_files

__all__ = ["SCHEMA_PATHS_KEY", "refused_schema_file"]

SCHEMA_PATHS_KEY: Final = "datagen.allowed.paths"

_DATAGEN: Final = "connectors.datagen."
_FILE: Final = "schema.filename"


def refused_schema_file(
    worker: Mapping[str, str], connector_class: str, props: Mapping[str, str]
) -> Iterator[ConfigError]:
    """Give an error if ``props`` name a schema file that the worker's file does not allow a connector to read."""
    name = props.get(_FILE)
    if not name or not connector_class.startswith(_DATAGEN):
        return
    allowed = [path.strip() for path in worker.get(SCHEMA_PATHS_KEY, "").split(",") if path.strip()]
    try:
        AllowedPaths(allowed, own_files(worker)).resolve(name)
    except ConnectError:
        where = f"in {' or '.join(allowed)}" if allowed else "that belongs neither to the worker nor to the system"
        yield ConfigError(_FILE, name, f"Name a file {where}, or have the worker's {SCHEMA_PATHS_KEY} changed")
