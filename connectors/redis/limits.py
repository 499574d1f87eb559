"""How large what is sent may be: over anything larger the server closes the connection, without a word that arrives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from connect.errors import DataError
from connectors.redis.commands import Command
from connectors.redis.failures import told
from connectors.redis.server import Client

__all__ = ["Limits", "bytes_of"]

_BULK: Final = "proto-max-bulk-len"
_BUFFER: Final = "client-query-buffer-limit"
_BULK_BYTES: Final = 512 << 20
_BUFFER_BYTES: Final = 1 << 30
_HEAD_BYTES: Final = 512
"""Bytes that the server's buffer may hold beside an argument."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; without its word, those of Redis as it is installed."""

    bulk_bytes: int = _BULK_BYTES
    buffer_bytes: int = _BUFFER_BYTES

    @classmethod
    def of(cls, client: Client) -> Limits:
        """Ask the server, which may not tell this user, or not at all where it is a service."""
        return cls(_asked(client, _BULK) or _BULK_BYTES, _asked(client, _BUFFER) or _BUFFER_BYTES)

    @property
    def transaction_bytes(self) -> int:
        """How many bytes of commands one transaction has: the server keeps them all in its buffer."""
        return self.buffer_bytes // 2

    def check(self, commands: Iterable[Command]) -> None:
        """Raise :class:`~connect.errors.DataError` if an argument is larger than the server takes."""
        most = min(self.bulk_bytes, self.buffer_bytes - _HEAD_BYTES)
        for command in commands:
            for part in command:
                if part.__class__ is bytes and len(part) > most:
                    key, limit = (_BULK, most) if most == self.bulk_bytes else (_BUFFER, self.buffer_bytes)
                    raise DataError(
                        f"{command[0]!s} would have an argument of {len(part)} bytes, and the server takes "
                        f"{limit} at most ({key})."
                    )


def bytes_of(command: Command) -> int:
    """Return roughly how many bytes the server keeps of a command."""
    return sum(len(part) for part in command if isinstance(part, bytes)) + _HEAD_BYTES


def _asked(client: Client, name: str) -> int | None:
    from redis.exceptions import ResponseError  # noqa: PLC0415 - the client is loaded only where it is used

    with told("ask the server for its limits"):
        try:
            answer = client.execute_command("CONFIG GET", name)
        except ResponseError:
            return None
    text = answer.get(name) if isinstance(answer, dict) else None
    return int(text) if text is not None and str(text).isdigit() else None
