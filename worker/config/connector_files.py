"""Reads the connector files that a standalone worker is started with: properties or JSON."""

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

__all__ = ["GivenConnector", "connector_of", "read_connector", "read_document", "with_name"]


@dataclass(frozen=True, slots=True)
class GivenConnector:
    """A connector as given in its file; without a ``target`` it starts running."""

    name: str
    config: GivenConfig = field(repr=False)
    target: TargetState | None = None


def read_connector(file: Path) -> GivenConnector:
    """Read the connector from a file.

    The file holds a JSON object of configuration keys, or ``{"name": ..., "config": {...}, "initial_state": ...}`` as
    in the REST API (KIP-993), or Java properties. Raises :class:`~connect.errors.ConnectError`, which names the file,
    if it cannot be read or has no name.
    """
    return with_name(file, connector_of(file, read_document(file)))


def read_document(file: Path) -> dict[str, Any]:
    """Read the object in a JSON or properties file; raise ``ConnectError`` if it cannot be read."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConnectError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConnectError(f"{file} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    document = _json_object(file, text)
    return _properties(file, text) if document is None else document


def connector_of(file: Path, document: Mapping[str, Any]) -> GivenConnector:
    """Return the connector that an object describes; its name is empty if it is missing."""
    config = _texts(document)
    return _given(config) if config is not None else _from_request(file, document)


def with_name(file: Path, given: GivenConnector) -> GivenConnector:
    """Return the connector; raise ``ConnectError`` if it has no name."""
    if not given.name:
        raise ConnectError(f"{file} has no name: set the key name to a name that no other connector has.")
    return given


def _json_object(file: Path, text: str) -> dict[str, Any] | None:
    """Return the object in a file, with numbers as written; ``None`` if it is not meant to be JSON."""
    if text.lstrip().startswith("["):
        raise ConnectError(f"{file} starts with a bracket: a file describes one connector, as an object in braces.")
    if not text.lstrip().startswith("{"):
        return None
    try:
        document: dict[str, Any] = json.loads(text, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ConnectError(
            f"{file} starts with a brace but is not valid JSON: {error}. Correct it, or write it as key=value "
            "properties."
        ) from error
    return document


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _properties(file: Path, text: str) -> dict[str, Any]:
    try:
        return dict(parse_properties(text))
    except ConnectError as error:
        raise ConnectError(f"{file}: {error}") from error


def _from_request(file: Path, document: Mapping[str, Any]) -> GivenConnector:
    """Parse the body of a request that creates a connector; unknown members are ignored, as in Java."""
    config = _texts(document["config"]) if isinstance(document.get("config"), dict) else None
    if config is None:
        raise ConnectError(
            f"{file} has values that are objects or arrays, so it is read as name, config and initial_state: write "
            "config as an object whose values are text, numbers, booleans or null."
        )
    name = document.get("name", config.get("name"))
    if config.get("name", name) != name:
        raise ConnectError(f"The name in the config of {file} differs from the name next to it: make them the same.")
    try:
        target = initial_target(document.get("initial_state"))
    except ConnectError as error:
        raise ConnectError(f"{file}: {error}") from error
    return _given({**config, "name": name if isinstance(name, str) else None}, target)


def _given(config: GivenConfig, target: TargetState | None = None) -> GivenConnector:
    name = (config.get("name") or "").strip()
    return GivenConnector(name, {**config, "name": name} if name else config, target)


def _texts(document: Mapping[str, Any]) -> dict[str, str | None] | None:
    """Return the values as strings; ``None`` if one is an object or array, which no configuration contains."""
    if any(isinstance(value, dict | list) for value in document.values()):
        return None
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in document.items()}
