"""Reads the connectors described by the files of a folder: properties, JSON, YAML and resources of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from connect.errors import ConnectError
from worker.cli.apply.plan import STATES, Desired
from worker.cli.apply.strimzi import document_of, is_resource
from worker.config.connector_files import connector_of, read_document, with_name
from worker.stores.config.store import TargetState

__all__ = ["read_folder"]

_YAML: Final = (".yaml", ".yml")
_SUFFIXES: Final = (".properties", ".json", *_YAML)
_STATE: Final = "state"
_INITIAL: Final = {TargetState.STARTED: "RUNNING", TargetState.PAUSED: "PAUSED", TargetState.STOPPED: "STOPPED"}


class _Texts(yaml.SafeLoader):
    """Reads every value except null as text, because configurations hold only text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping. A duplicate key is an error, because one of its values would be lost."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := sorted({key for key in keys if keys.count(key) > 1 and key != "<<"}):
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice[0]} appears twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


_KEPT: Final = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
_Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_folder(place: Path) -> list[Desired]:
    """Read the connectors in a folder or a single file; raise ``ConnectError`` listing every invalid file."""
    files = sorted(file for file in place.iterdir() if _is_connector(file)) if place.is_dir() else [place]
    found: dict[str, Desired] = {}
    errors: list[str] = []
    for file in files:
        try:
            for desired in _connectors(file):
                if (other := found.get(desired.name)) is not None:
                    errors.append(f"{file} and {other.file} both describe the connector {desired.name}: remove one.")
                found.setdefault(desired.name, desired)
        except ConnectError as error:
            errors.append(str(error))
    if errors:
        raise ConnectError("\n".join(errors))
    return list(found.values())


def _is_connector(file: Path) -> bool:
    return file.is_file() and file.suffix in _SUFFIXES and not file.name.startswith(".")


def _connectors(file: Path) -> Iterator[Desired]:
    documents = _yaml_documents(file) if file.suffix in _YAML else [read_document(file)]
    for read in documents:
        document = document_of(file, read) if is_resource(read) else read
        wrapped = isinstance(document.get("config"), Mapping)
        own = {key: value for key, value in document.items() if not (wrapped and key == _STATE)}
        given = with_name(file, connector_of(file, own))
        config = {key: value for key, value in given.config.items() if value is not None}
        state = _state(file, document.get(_STATE)) if wrapped else None
        initial = None if given.target is None else _INITIAL[given.target]
        yield Desired(given.name, config, file, state, state or initial)


def _state(file: Path, written: object) -> str | None:
    if written is None:
        return None
    state = str(written).upper()
    if state not in STATES:
        raise ConnectError(
            f"{file}: state is {written}; it must be one of {', '.join(STATES).lower()}. Correct or remove it."
        )
    return state


def _yaml_documents(file: Path) -> list[dict[str, Any]]:
    try:
        documents = list(yaml.load_all(file.read_bytes(), _Texts))
    except OSError as error:
        raise ConnectError(f"{file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConnectError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    found = [document for document in documents if document is not None]
    if wrong := [document for document in found if not isinstance(document, dict)]:
        raise ConnectError(f"{file} holds a {type(wrong[0]).__name__}: write key: value lines, one for each key.")
    return found
