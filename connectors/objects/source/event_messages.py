"""Messages about objects of S3: what S3 itself sends, and the same through SNS and EventBridge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_plus

import orjson

from connect.errors import DataError

__all__ = ["ObjectEvent", "events_of"]

_ENVELOPES: Final = 3
"""How deep a message may lie within others: EventBridge to SNS, and that to the queue."""
_SHOWN: Final = 200
_CREATED: Final = ("ObjectCreated:", "ObjectRestore:Completed")
_CREATED_BY_BRIDGE: Final = frozenset({"Object Created", "Object Restore Completed"})


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object that is there to be read, or was when the message was sent."""

    bucket: str
    key: str


def events_of(body: str) -> list[ObjectEvent]:
    """Return the objects that a message says were written; those removed, tagged or tested are none of them.

    Raises :class:`~connect.errors.DataError` for a message of another kind.
    """
    try:
        return list(_events(_unwrapped(body)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"it is no message of S3, SNS or EventBridge about objects ({type(error).__name__}): {body[:_SHOWN]}"
        ) from error


def _unwrapped(body: str) -> dict[str, Any]:
    content = orjson.loads(body)
    for _ in range(_ENVELOPES):
        if not isinstance(content, dict) or content.get("Type") != "Notification":
            break
        content = orjson.loads(content["Message"])
    if not isinstance(content, dict):
        raise TypeError("not an object")
    return content


def _events(content: dict[str, Any]) -> Iterator[ObjectEvent]:
    if content.get("Event") == "s3:TestEvent":
        return  # sent when notifications are set up
    if content.get("source") == "aws.s3":
        detail = content["detail"]
        if content["detail-type"] in _CREATED_BY_BRIDGE:
            yield _event(detail["bucket"]["name"], detail["object"]["key"])
        return
    for record in content["Records"]:
        # MinIO and others put the service before the name of the event.
        if record["eventName"].removeprefix("s3:").startswith(_CREATED):
            about = record["s3"]
            yield _event(about["bucket"]["name"], unquote_plus(about["object"]["key"], errors="strict"))


def _event(bucket: Any, key: Any) -> ObjectEvent:
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise TypeError("bucket and key are texts")
    return ObjectEvent(bucket, key)
