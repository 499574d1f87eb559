"""The users of basic authentication: a properties file of names and passwords, in clear text or hashed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from connect.config import parse_properties
from worker.security.watched_file import WatchedFile

__all__ = ["Users", "is_hash", "matches"]

_ARGON2: Final = "$argon2"
_BCRYPT: Final = ("$2a$", "$2b$", "$2y$")
_BCRYPT_BYTES: Final = 72
"""bcrypt uses only this many bytes of a password, and htpasswd hashes no more."""
_REMEMBERED: Final = 1_000
_REMEMBERED_SECONDS: Final = 60.0
_HASHES_AT_ONCE: Final = 2
"""An argon2 check takes 64 MiB; all threads of the REST API at once would take gigabytes."""


def is_hash(stored: str) -> bool:
    """Return whether a password in the file is hashed with argon2 or bcrypt."""
    return stored.startswith((_ARGON2, *_BCRYPT))


def matches(stored: str, password: str) -> bool:
    """Return whether a password matches the one in the file, in clear text or as a hash."""
    if stored.startswith(_ARGON2):
        return _matches_argon2(stored, password)
    if stored.startswith(_BCRYPT):
        return _matches_bcrypt(stored, password)
    return hmac.compare_digest(_digest(stored), _digest(password))


@dataclass(frozen=True, slots=True)
class _Passwords:
    """The passwords in the file by user; ``decoy`` is a hash that is checked for unknown users."""

    by_user: Mapping[str, str] = field(repr=False)
    decoy: str | None = field(repr=False)


class Users:
    """Checks passwords against a file, which is read again when it changes. May be used by any thread.

    An unknown user takes as long as a wrong password: if the file has hashes, each check computes one. A correct
    password is remembered until a minute after its last use, as a keyed hash in memory, or until the user's entry in
    the file changes.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = WatchedFile(file, "file of users", _parse, _Passwords(MappingProxyType({}), None))
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        self._one_at_a_time = threading.Lock()
        self._hashing = threading.BoundedSemaphore(_HASHES_AT_ONCE)

    @property
    def fault(self) -> str | None:
        """The error in the current file, while its previous content is used."""
        return self._file.fault

    def stored(self, user: str) -> str | None:
        """Return the user's entry in the file, which changes with the password."""
        return self._file.read().by_user.get(user)

    def remembers(self, user: str, password: str) -> bool:
        """Return whether this password was correct a moment ago and still is."""
        stored = self.stored(user)
        if stored is None:
            return False
        mark = self._mark(user, stored, password)
        with self._one_at_a_time:
            is_known = self._remembered.get(mark, -1.0) > self._clock()
        if is_known:
            # A client with the right password is never delayed by others who guess the same user's password.
            self._remember(mark)
        return is_known

    def check(self, user: str, password: str) -> bool:
        """Return whether this is the user's password."""
        known = self._file.read()
        stored = known.by_user.get(user)
        is_right = stored is not None and not is_hash(stored) and matches(stored, password)
        hashed = stored if stored is not None and is_hash(stored) else known.decoy
        if hashed is not None:
            with self._hashing:
                found = matches(hashed, password)
            is_right = found if hashed is stored else is_right
        if is_right and stored is not None:
            self._remember(self._mark(user, stored, password))
        return is_right

    def _mark(self, user: str, stored: str, password: str) -> bytes:
        return hmac.digest(self._key, repr((user, stored, password)).encode(), "sha256")

    def _remember(self, mark: bytes) -> None:
        with self._one_at_a_time:
            self._remembered[mark] = self._clock() + _REMEMBERED_SECONDS
            self._remembered.move_to_end(mark)
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)


def _parse(text: str) -> _Passwords:
    by_user = parse_properties(text)
    return _Passwords(by_user, next((stored for stored in by_user.values() if is_hash(stored)), None))


def _matches_argon2(stored: str, password: str) -> bool:
    import argon2  # noqa: PLC0415 - only workers with such a file need it

    try:
        return argon2.PasswordHasher().verify(stored, password)
    except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
        return False


def _matches_bcrypt(stored: str, password: str) -> bool:
    import bcrypt  # noqa: PLC0415 - only workers with such a file need it

    try:
        return bcrypt.checkpw(password.encode("utf-8", "surrogateescape")[:_BCRYPT_BYTES], stored.encode())
    except ValueError:
        return False


def _digest(text: str) -> bytes:
    """Return a digest. All digests have the same length, so comparing them does not reveal a password's length."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
