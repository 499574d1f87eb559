"""A file that is read again when it has changed; an invalid change is ignored."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from connect.errors import ConnectError, os_reason

__all__ = ["WatchedFile"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
_Version: TypeAlias = tuple[int, int, int]


class WatchedFile(Generic[T]):
    """Holds the result of ``parse`` for a file's text. May be used by any thread.

    ``parse`` raises :class:`~connect.errors.ConnectError` for an invalid text, without secrets in the message. ``what``
    is the file's name in log lines. Until the file has been read once, the content is ``nothing``.
    """

    def __init__(self, path: Path, what: str, parse: Callable[[str], T], nothing: T) -> None:
        self.path = path
        self._what = what
        self._parse = parse
        self._content = nothing
        self._version: _Version | None = None
        self._fault: str | None = None
        self._was_read = False
        self._one_at_a_time = threading.Lock()

    def read(self) -> T:
        """Return the content, after reading the file again if it has changed."""
        with self._one_at_a_time:
            self._look()
            return self._content

    @property
    def fault(self) -> str | None:
        """The error in the current file, while its previous content is used."""
        with self._one_at_a_time:
            self._look()
            return self._fault

    def _look(self) -> None:
        try:
            found = self.path.stat()
            version = (found.st_mtime_ns, found.st_size, found.st_ino)
            if version == self._version:
                return
            self._version = version
            self._content = self._parse(self.path.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            self._version = None
            self._fail(f"it cannot be read: {os_reason(error)}")
        except UnicodeDecodeError:
            self._fail("it is not UTF-8")
        except ConnectError as error:
            self._fail(str(error))
        else:
            if self._was_read or self._fault is not None:
                logger.info("The %s %s was read again", self._what, self.path)
            self._was_read, self._fault = True, None

    def _fail(self, reason: str) -> None:
        if reason == self._fault:
            return
        self._fault = reason
        kept = "What it said before holds on" if self._was_read else "Until it can be read, it allows nothing"
        logger.error("The %s %s is invalid: %s. %s.", self._what, self.path, reason, kept)
