"""Stack traces as text, cached so that many errors from the same place are cheap to format."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Final

__all__ = ["error_text", "stack_trace"]

_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


def stack_trace(error: BaseException) -> str:
    """Return the full stack trace of an error, causes included, as Python prints it."""
    parts: list[str] = []
    for link, following in _chain(error):
        parts.append(_stack(tuple(_places(link.__traceback__)), _Traceback(link.__traceback__)))
        parts.append(_last_lines(link))
        parts.append(following)
    return "".join(parts)


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return the error and its causes, oldest first, each with the text that Python prints before the next."""
    found: list[tuple[BaseException, str]] = [(error, "")]
    seen = {id(error)}
    for earlier, between in _earlier(error):
        if id(earlier) in seen:
            break
        seen.add(id(earlier))
        found.append((earlier, between))
    return found[::-1]


def _earlier(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    current = error
    while True:
        if current.__cause__ is not None:
            current, between = current.__cause__, _CAUSE
        elif current.__context__ is not None and not current.__suppress_context__:
            current, between = current.__context__, _CONTEXT
        else:
            return
        yield current, between


def _places(tb: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while tb is not None:
        yield tb.tb_frame.f_code, tb.tb_lasti
        tb = tb.tb_next


def _last_lines(error: BaseException) -> str:
    """Return the class and the text of an error."""
    kind = type(error)
    if isinstance(error, SyntaxError | BaseExceptionGroup) or getattr(error, "__notes__", None):
        return "".join(traceback.format_exception_only(error))
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    text = error_text(error)
    return f"{name}: {text}\n" if text else f"{name}\n"


def error_text(error: BaseException) -> str:
    """Return an error's message; building a report must not raise because a plugin's error cannot tell its own."""
    try:
        return str(error)
    except Exception as broken:
        parts = [item for item in (*error.args, *vars(error).values()) if isinstance(item, str) and item]
        return "; ".join(dict.fromkeys(parts)) or f"(its message cannot be read: {type(broken).__name__})"


class _Traceback:
    """A traceback that is ignored when cache keys are compared."""

    def __init__(self, value: TracebackType | None) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Traceback)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=256)
def _stack(frames: tuple[tuple[CodeType, int], ...], held: _Traceback) -> str:  # noqa: ARG001
    """Format the frames of an error; the cache key is their places in the code."""
    tb, held.value = held.value, None  # the cache keeps the key: without the frames, whose records would stay alive
    return "" if tb is None else "Traceback (most recent call last):\n" + "".join(traceback.format_tb(tb))
