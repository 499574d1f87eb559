"""API tokens: secrets for programs, created by ``sluice token``; a file keeps their hashes.

Crash point: a new file is written and renamed, so the file is the old one or the new one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from connect.errors import ConnectError, os_reason
from worker.security.principals import Principal
from worker.security.watched_file import WatchedFile

__all__ = ["TOKEN_PREFIX", "ApiToken", "ApiTokens", "TokenFile"]

TOKEN_PREFIX: Final = "sluice_"  # noqa: S105 - what all tokens begin with is no secret
_MECHANISM: Final = "token"
_TOKEN: Final = re.compile(rf"{TOKEN_PREFIX}([0-9a-f]{{12}})_([\w-]{{43}})")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token; the file holds only the hash of its secret, in hexadecimal. Times are seconds since 1970."""

    id: str
    name: str
    groups: tuple[str, ...]
    created: int
    expires: int | None
    hash: str = field(repr=False)


class ApiTokens:
    """Recognises tokens by their file, which is read again when it changes. May be used by any thread."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        nothing: Mapping[str, ApiToken] = MappingProxyType({})
        self._file = WatchedFile(file, "file of API tokens", _parse, nothing)
        self._clock = clock

    @property
    def fault(self) -> str | None:
        """The error in the current file, while its previous content is used."""
        return self._file.fault

    def principal(self, token: str) -> Principal | None:
        """Return the token's principal; ``None`` if it is unknown, revoked or expired."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        known = self._file.read().get(match[1])
        if known is None or not hmac.compare_digest(known.hash, _hash(match[2])):
            return None
        if known.expires is not None and known.expires <= self._clock():
            return None
        return Principal(known.name, _MECHANISM, known.groups)


class TokenFile:
    """Changes a file of tokens, for the command line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tokens(self) -> list[ApiToken]:
        """Return the tokens, oldest first; none if there is no file yet."""
        try:
            return list(_parse(self._path.read_text(encoding="utf-8")).values())
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectError(f"The file of tokens {self._path} cannot be read: {os_reason(error)}") from error

    def create(self, name: str, groups: Sequence[str], seconds: float | None) -> str:
        """Create a token for a principal, valid for that many seconds, and return it; it is not shown again."""
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        now = int(time.time())
        expires = None if seconds is None else now + int(seconds)
        self._write([*self.tokens(), ApiToken(number, name, tuple(groups), now, expires, _hash(secret))])
        return f"{TOKEN_PREFIX}{number}_{secret}"

    def revoke(self, number: str) -> None:
        """Revoke a token by its id."""
        tokens = self.tokens()
        left = [token for token in tokens if token.id != number]
        if len(left) == len(tokens):
            raise ConnectError(
                f"There is no token with the id {number} in {self._path}. `sluice token list` lists them."
            )
        self._write(left)

    def _write(self, tokens: Sequence[ApiToken]) -> None:
        text = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=2, ensure_ascii=False)
        try:
            descriptor, beside = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(text + "\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(beside).replace(self._path)
            except BaseException:
                with suppress(OSError):
                    Path(beside).unlink()
                raise
        except OSError as error:
            raise ConnectError(f"The file of tokens {self._path} cannot be written: {os_reason(error)}") from error


def _parse(text: str) -> Mapping[str, ApiToken]:
    try:
        tokens = [_token(item) for item in json.loads(text)["tokens"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConnectError("it is not a file that sluice token has written") from error
    return MappingProxyType({token.id: token for token in tokens})


def _token(item: Mapping[str, Any]) -> ApiToken:
    expires = item["expires"]
    return ApiToken(
        str(item["id"]),
        str(item["name"]),
        tuple(map(str, item["groups"])),
        int(item["created"]),
        None if expires is None else int(expires),
        str(item["hash"]),
    )


def _hash(secret: str) -> str:
    # The secret has 32 random bytes, so it cannot be guessed however fast the hash is.
    return hashlib.sha256(secret.encode()).hexdigest()
