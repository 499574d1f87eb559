"""Excerpts of values for error messages, short enough for a log line."""

from __future__ import annotations

from connect.data.numerals import integer_text

__all__ = ["excerpt"]

_MOST_CHARACTERS = 200


def excerpt(value: object) -> str:
    """Return the ``repr`` of a value, truncated to a length that fits a log line."""
    try:
        text = integer_text(value) if type(value) is int else repr(value)
    except RecursionError:
        return f"a very deeply nested {type(value).__name__}"
    except ValueError:
        # Python does not write whole numbers of more than 4,300 digits.
        return f"a {type(value).__name__} with a very long number in it"
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}... ({len(text)} characters)"
