"""Configuration revisions as entity tags, for changes on condition that the configuration has not changed meanwhile."""

from __future__ import annotations

from typing import Final

from flask import request

from worker.errors import BadRequestError

__all__ = ["expected_revision", "revision_tag"]

_MOST_DIGITS: Final = 20
_ANY: Final = "*"


def revision_tag(revision: int) -> str:
    """Return the ``ETag`` of a revision."""
    return f'"{revision}"'


def expected_revision() -> int | None:
    """Return the revision required by ``If-Match``; ``None`` if the request is unconditional."""
    tag = request.headers.get("If-Match", _ANY).strip()
    if tag == _ANY:
        return None
    number = tag.removeprefix("W/").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise BadRequestError(f"Invalid If-Match {tag!r}: use the ETag of GET /connectors/NAME/config.")
    return int(number)
