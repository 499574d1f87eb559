"""Positions as Debezium's offsets: ``sec`` and ``ord`` of the event's cluster time, and the resume token.

While documents are read by a snapshot, ``initsync`` says so; Debezium then begins the snapshot anew, and this connector
continues after the last document, which ``snapshot.ns`` and ``snapshot.id`` tell.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bson import decode, encode
from bson.errors import BSONError

from connect.data import Offset
from connect.errors import ConnectError, DataError
from connect.kits.mongodb.extended_json import parse_document
from connect.kits.mongodb.json_forms import json_format

__all__ = ["Position", "offset_of", "position_of", "snapshot_offset"]

_SPLIT: Final = "is_split"
_canonical: Final = json_format("ExtendedJson")


@dataclass(frozen=True, slots=True)
class Position:
    """Where to continue: a resume token, and the last document of a snapshot if one is under way."""

    token: Mapping[str, Any] | None
    is_snapshot: bool = False
    namespace: str = ""
    identity: Any = None
    is_split: bool = False
    """Whether the token is that of a fragment: the server takes it only if it is to send fragments again."""


def offset_of(
    token: Mapping[str, Any], seconds: int = -1, order: int = -1, *, is_split: bool = False
) -> dict[str, Any]:
    """Return the offset after an event."""
    offset = {"sec": seconds, "ord": order, "resume_token": base64.b64encode(encode(token)).decode("ascii")}
    return {**offset, _SPLIT: True} if is_split else offset


def snapshot_offset(token: Mapping[str, Any], namespace: str, identity: Any) -> dict[str, Any]:
    """Return the offset after a document of a snapshot."""
    text = _canonical.text(_canonical.decoded(encode({"_id": identity})))
    return {**offset_of(token), "initsync": True, "snapshot.ns": namespace, "snapshot.id": text}


def position_of(offset: Offset) -> Position:
    """Return the position that an offset holds; a ``ConnectError`` says what is wrong with it."""
    token = offset.get("resume_token")
    if token is not None and not isinstance(token, str):
        raise ConnectError('The offset must have a resume token as text in "resume_token".')
    try:
        found = None if token is None else _token(token)
        if not offset.get("initsync"):
            return Position(found, is_split=bool(offset.get(_SPLIT)))
        text = offset.get("snapshot.id")
        if not isinstance(text, str):
            return Position(found, is_snapshot=True)
        return Position(found, True, str(offset.get("snapshot.ns")), parse_document(text)["_id"])
    except (DataError, BSONError, binascii.Error, KeyError, ValueError) as error:
        raise ConnectError(f"The offset {dict(offset)} cannot be read: {error}") from error


def _token(text: str) -> Mapping[str, Any]:
    """Return a token: the Base64 of a document, or its data alone as older versions wrote it."""
    if text.startswith("8") and all(character in "0123456789abcdefABCDEF" for character in text):
        return {"_data": text}
    return decode(base64.b64decode(text, validate=True))
