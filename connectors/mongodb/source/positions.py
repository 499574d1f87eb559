"""Positions in a change stream and in a copy, as source offsets.

They are those of the Java connector, which continues from them, as this one does from its: ``_id`` is the resume token
as JSON, ``copy`` tells that a copy is under way, ``HEARTBEAT`` that no record carries the token. While a copy can be
resumed, ``copy.ns`` and ``copy.id`` tell its last document; the Java connector ignores these and copies anew. ``split``
tells that the token is that of a fragment of a large event, which the server takes only if it is to send fragments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bson import encode
from bson.objectid import ObjectId

from connect.data import Offset
from connect.errors import ConnectError, DataError
from connect.kits.mongodb.client import partition_hosts
from connect.kits.mongodb.extended_json import parse_document
from connect.kits.mongodb.json_forms import json_format
from connectors.mongodb.source.config import MongoSourceConfig

__all__ = ["CopyPosition", "Position", "copy_offset", "position_of", "source_partition", "stream_offset", "token_text"]

_SPLIT: Final = "split"
_canonical = json_format("ExtendedJson")


@dataclass(frozen=True, slots=True)
class CopyPosition:
    """The last document of a copy that was published."""

    namespace: str
    identity: Any


@dataclass(frozen=True, slots=True)
class Position:
    """Where to continue: a resume token, and the last document of a copy if one is under way."""

    token: Mapping[str, Any] | None
    is_copying: bool = False
    copied: CopyPosition | None = None
    is_split: bool = False
    """Whether the token is that of a fragment."""


def source_partition(config: MongoSourceConfig) -> dict[str, str]:
    """Return the source partition, named as the Java connector does."""
    name = config.offset_partition_name
    if not name:
        namespace = f"{config.database}.{config.collection}" if config.collection else config.database
        name = f"{partition_hosts(config.connection_uri.value)}/{namespace}"
    return {"ns": name}


def token_text(token: Mapping[str, Any]) -> str:
    """Return a resume token as JSON."""
    data = token.get("_data")
    if isinstance(data, str) and len(token) == 1:
        return f'{{"_data": "{data}"}}'
    return _canonical.text(_canonical.decoded(encode(token)))


def stream_offset(token: Mapping[str, Any], *, is_split: bool = False) -> dict[str, str]:
    """Return the offset after an event."""
    offset = {"_id": token_text(token)}
    return {**offset, _SPLIT: "true"} if is_split else offset


def copy_offset(token: str, namespace: str, identity: Any) -> dict[str, str]:
    """Return the offset after a copied document. ``token`` is where the stream begins once all is copied."""
    return {"_id": token, "copy": "true", "copy.ns": namespace, "copy.id": _identity_text(identity)}


def position_of(offset: Offset) -> Position:
    """Return the position that an offset holds; a ``ConnectError`` says what is wrong with it."""
    text = offset.get("_id")
    if not isinstance(text, str):
        raise ConnectError('The offset must have a resume token as JSON in "_id", such as {"_data": "8263..."}.')
    try:
        token = parse_document(text)
        identity = offset.get("copy.id")
        copied = None
        if isinstance(identity, str) and isinstance(offset.get("copy.ns"), str):
            copied = CopyPosition(str(offset["copy.ns"]), parse_document(identity)["_id"])
    except (DataError, KeyError) as error:
        raise ConnectError(f"The offset {json.dumps(dict(offset))} cannot be read: {error}") from error
    return Position(token, "copy" in offset, copied, _SPLIT in offset)


def _identity_text(identity: Any) -> str:
    if isinstance(identity, ObjectId):
        return f'{{"_id": {{"$oid": "{identity}"}}}}'
    return _canonical.text(_canonical.decoded(encode({"_id": identity})))
