"""Reads Strimzi's ``KafkaConnector`` resources, by which connectors are described in Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from connect.errors import ConnectError

__all__ = ["document_of", "is_resource"]

_KIND: Final = "KafkaConnector"
_OWN_KEYS: Final = {"class": "connector.class", "tasksMax": "tasks.max", "version": "connector.plugin.version"}
_WITHOUT_EFFECT: Final = {"alterOffsets", "listOffsets"}
"""They name where an annotation of the operator puts offsets or finds them; without the annotation they do nothing."""


def is_resource(document: Mapping[str, Any]) -> bool:
    """Whether a document of a file is a resource of Kubernetes."""
    return "apiVersion" in document and "kind" in document


def document_of(file: Path, resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a resource describes in the form of the other files: ``name``, ``config`` and perhaps ``state``.

    Raises ConnectError if it is another resource, or has something that cannot be honoured here.
    """
    if resource["kind"] != _KIND:
        raise ConnectError(
            f"{file} has a {resource['kind']}, which is no connector: of Kubernetes' resources sluice apply reads only "
            f"{_KIND}. Move the other to a folder of its own."
        )
    spec = _mapping(file, resource, "spec")
    if unknown := spec.keys() - {"config", "autoRestart", "pause", "state", *_OWN_KEYS, *_WITHOUT_EFFECT}:
        raise ConnectError(
            f"{file}: spec.{min(unknown)} is unknown here. Remove it, or write it as a key of spec.config."
        )
    config = _restarts(_mapping(file, spec, "autoRestart")) | _config(file, spec)
    document = {"name": _mapping(file, resource, "metadata").get("name"), "config": config}
    paused = "paused" if str(spec.get("pause")).lower() == "true" else None
    state = spec.get("state") or paused
    return document | ({"state": state} if state else {})


def _config(file: Path, spec: Mapping[str, Any]) -> dict[str, Any]:
    written = _mapping(file, spec, "config")
    for member, key in (("metadata.name", "name"), *((f"spec.{name}", key) for name, key in _OWN_KEYS.items())):
        if key in written:
            raise ConnectError(f"{file}: spec.config has the key {key}, which a {_KIND} has as {member}. Remove one.")
    return {**written, **{key: spec[name] for name, key in _OWN_KEYS.items() if spec.get(name) is not None}}


def _restarts(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys by which a failed connector or task is restarted; those in ``config`` go before them."""
    if str(written.get("enabled")).lower() != "true":
        return {}
    limit = written.get("maxRestarts")
    return {"restart.policy": "on-failure"} | ({"restart.limit": limit} if limit is not None else {})


def _mapping(file: Path, of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = of.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ConnectError(f"{file}: {key} holds a {type(value).__name__}: write key: value lines below it.")
    return value or {}
