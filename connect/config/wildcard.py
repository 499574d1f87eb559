"""Patterns in which ``*`` is any text."""

from __future__ import annotations

__all__ = ["matches_wildcard"]


def matches_wildcard(pattern: str, text: str) -> bool:
    """Tell whether ``text`` is what ``pattern`` says; however long it is, it is gone through once."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    if not text.startswith(first):
        return False
    *middle, last = others
    position = len(first)
    for part in middle:
        found = text.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return text.endswith(last) and len(text) - position >= len(last)
