"""Events that are larger than a document may be: the server sends them in fragments, which are put together here.

The resume token of an event in fragments is that of its last one: a kill between two of them has all read again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from bson import encode
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from connect.kits.mongodb.failures import is_too_large

__all__ = ["SPLITS", "Fragments", "can_split", "help_with"]

_log = logging.getLogger(__name__)

SPLITS: Final[Mapping[str, Any]] = {"$changeStreamSplitLargeEvent": {}}
"""The stage that has the server split events; it has to be the last one."""

_SPLITS_FROM: Final = ((6, 0, 9), (7, 0, 0))
"""The versions from which on servers know the stage, of 6.0 and of all later ones: 6.1 to 6.3 do not."""


def can_split(client: MongoClient[Any]) -> bool:
    """Return whether the server knows the stage."""
    version = tuple(client.server_info()["versionArray"][:3])
    of_six, later = _SPLITS_FROM
    return version >= later or of_six <= version < (6, 1, 0)


def help_with(error: OperationFailure, client: MongoClient[Any]) -> bool:
    """Return whether what failed can be read in fragments, and log that it is from now on."""
    if not (is_too_large(error) and can_split(client)):
        return False
    _log.info("An event is larger than 16 MB: from now on such events are read in fragments.")
    return True


class Fragments:
    """Puts the fragments of events together, and knows the tokens that the server takes only to send fragments."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._last: Any = None

    def whole(self, found: RawBSONDocument) -> RawBSONDocument | None:
        """Take what the stream has next; return the event if it is whole."""
        place = found.get("splitEvent")
        if place is None:
            self._last = None
            return found
        if place["fragment"] == 1:
            self._fields = {}
        self._fields.update(found)
        if place["fragment"] < place["of"]:
            return None
        fields, self._fields = self._fields, {}
        del fields["splitEvent"]
        self._last = found["_id"]["_data"]
        return RawBSONDocument(encode(fields))

    @property
    def is_within(self) -> bool:
        """Whether an event is not whole yet: the stream's token would lead into its midst."""
        return bool(self._fields)

    def has_ended_at(self, token: Mapping[str, Any]) -> bool:
        """Return whether a token is that of the last event, and that came in fragments."""
        return self._last is not None and token["_data"] == self._last
