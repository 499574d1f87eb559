"""The character sets of answers."""

from __future__ import annotations

import codecs
from email.message import Message
from typing import Final

from connect.errors import DataError
from connect.kits.http.messages import Response

__all__ = ["body_text", "declared_charset", "shown_body"]

_NO_CHARSETS: Final = frozenset({"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
"""Codecs of Python that no server means."""


def declared_charset(response: Response) -> str | None:
    """Return Python's name of the charset in the answer's Content-Type; ``None`` if there is none.

    Raises :class:`~connect.errors.DataError` if it is unknown.
    """
    message = Message()
    message["Content-Type"] = response.headers.get("content-type", "")
    declared = message.get_content_charset()
    if not declared:
        return None
    try:
        name = codecs.lookup(declared).name
        "".encode(name)
    except (LookupError, ValueError):
        name = "undefined"
    if name.replace("-", "_") in _NO_CHARSETS:
        raise DataError(
            f"The answer is in the charset {declared[:40]!r}, which is unknown: correct the Content-Type of the server"
        )
    return name


def body_text(response: Response) -> str:
    """Return the text of an answer, which is UTF-8 unless its Content-Type says otherwise.

    Raises :class:`~connect.errors.DataError` if it is not.
    """
    charset = declared_charset(response)
    try:
        return response.body.decode(charset or "utf-8")
    except UnicodeError:
        declared = "UTF-8" if charset is None else f"{charset}, as its Content-Type says"
        raise DataError(f"The answer is not {declared}") from None


def shown_body(response: Response, most_bytes: int | None = None) -> str:
    """Return the text of an answer for a message, whatever is wrong with it."""
    try:
        charset = declared_charset(response) or "utf-8"
    except DataError:
        charset = "utf-8"
    return response.body[:most_bytes].decode(charset, "replace")
