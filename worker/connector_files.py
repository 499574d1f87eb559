"""The files of connectors that standalone mode is given: properties, or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from connect.config import parse_properties
from connect.errors import ConnectError

__all__ = ["read_connector"]


def read_connector(file: Path) -> tuple[str, dict[str, str]]:
    """The name and the configuration of a connector.

    A file is tried as a JSON object of configuration keys, then as ``{"name": ..., "config": {...}}`` (KIP-993), then
    as Java properties. Raises :class:`~connect.errors.ConnectError` when it cannot be read or gives no name.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConnectError(f"{file} cannot be read: {error.strerror}") from error
    config = _from_json(data)
    if config is None:
        try:
            config = parse_properties(data.decode())
        except UnicodeDecodeError as error:
            raise ConnectError(f"{file} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from error
        except ConnectError as error:
            raise ConnectError(f"{file}: {error}") from error
    name = config.get("name", "").strip()
    if not name:
        raise ConnectError(f"{file} gives no name; add a line name=... with a name that no other connector has.")
    return name, {**config, "name": name}


def _from_json(data: bytes) -> dict[str, str] | None:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    if document.keys() <= {"name", "config", "initial_state"} and isinstance(document.get("config"), dict):
        return {"name": str(document.get("name", "")), **_texts(document["config"])}
    return _texts(document)


def _texts(config: Mapping[str, Any]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else orjson.dumps(value).decode() for key, value in config.items()}
