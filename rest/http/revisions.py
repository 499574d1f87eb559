"""Revisions of configurations as entity tags, so that a change can be made only to what its author has read."""

from __future__ import annotations

from typing import Final

from flask import request

from worker.errors import BadRequestError

__all__ = ["expected_revision", "revision_tag"]

_MOST_DIGITS: Final = 20
_ANY: Final = "*"


def revision_tag(revision: int) -> str:
    """Return the tag of a revision, the value of ``ETag``."""
    return f'"{revision}"'


def expected_revision() -> int | None:
    """Return the revision that the request names in ``If-Match``; ``None`` if it is made whatever there is."""
    tag = request.headers.get("If-Match", _ANY).strip()
    if tag == _ANY:
        return None
    number = tag.removeprefix("W/").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise BadRequestError(f"If-Match is {tag!r}; it has to be the ETag of GET /connectors/NAME/config.")
    return int(number)
