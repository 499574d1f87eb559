"""The connector files that a standalone worker is started with: properties or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connect.config import parse_properties
from connect.errors import ConnectError
from worker.herder.connectors.writes import GivenConfig, initial_target
from worker.stores.config.store import TargetState

__all__ = ["GivenConnector", "read_connector"]


@dataclass(frozen=True, slots=True)
class GivenConnector:
    """A connector as its file gives it; without a ``target`` it starts running."""

    name: str
    config: GivenConfig = field(repr=False)
    target: TargetState | None = None


def read_connector(file: Path) -> GivenConnector:
    """Read the connector in a file.

    The file holds a JSON object of configuration keys, or ``{"name": ..., "config": {...}, "initial_state": ...}`` as
    the REST API takes it (KIP-993), or Java properties. Raises :class:`~connect.errors.ConnectError`, which names the
    file, when it cannot be read or gives no name.
    """
    try:
        text = file.read_bytes().decode()
    except OSError as error:
        raise ConnectError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConnectError(f"{file} is not text in UTF-8 (byte {error.start}); save it as UTF-8.") from error
    document = _json_object(file, text)
    if document is None:
        return _from_properties(file, text)
    config = _texts(document)
    return _named(file, config) if config is not None else _from_request(file, document)


def _json_object(file: Path, text: str) -> dict[str, Any] | None:
    """The object in a file, with numbers as they are written; ``None`` if it is not meant to be JSON."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        document: dict[str, Any] = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ConnectError(
            f"{file} starts with a brace but is not valid JSON: {error}. Correct it, or write "
            "it as key=value properties."
        ) from error
    return document


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _from_properties(file: Path, text: str) -> GivenConnector:
    try:
        config = parse_properties(text)
    except ConnectError as error:
        raise ConnectError(f"{file}: {error}") from error
    return _named(file, config)


def _from_request(file: Path, document: Mapping[str, Any]) -> GivenConnector:
    """The body of a request that creates a connector; members that it does not have are ignored, as in Java."""
    config = _texts(document["config"]) if isinstance(document.get("config"), dict) else None
    if config is None:
        raise ConnectError(
            f"{file} has values that are objects or arrays, so it is read as name, config and initial_state: write "
            "config as an object whose values are text, numbers, booleans or null."
        )
    name = document.get("name", config.get("name"))
    if config.get("name", name) != name:
        raise ConnectError(f"The name in the config of {file} is not the name beside it: make them the same.")
    try:
        target = initial_target(document.get("initial_state"))
    except ConnectError as error:
        raise ConnectError(f"{file}: {error}") from error
    return _named(file, {**config, "name": name if isinstance(name, str) else None}, target)


def _named(file: Path, config: GivenConfig, target: TargetState | None = None) -> GivenConnector:
    name = (config.get("name") or "").strip()
    if not name:
        raise ConnectError(f"{file} gives no name: set the key name, to one that is not taken.")
    return GivenConnector(name, {**config, "name": name}, target)


def _texts(document: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The values as texts; ``None`` if any is an object or array, which no configuration has."""
    if any(isinstance(value, dict | list) for value in document.values()):
        return None
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in document.items()}
