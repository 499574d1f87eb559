"""How an attempt to join a group, or a sign of life, may fail."""

from __future__ import annotations

from connect.errors import ConnectError

__all__ = ["GenerationLostError", "MemberRefusedError", "NotJoinedError"]


class NotJoinedError(ConnectError):
    """It did not work out this time and may the next; ``at_once`` if there is no reason to wait."""

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message)
        self.at_once = at_once


class GenerationLostError(ConnectError):
    """The group has gone on without this member: what it held may be another's by now."""


class MemberRefusedError(ConnectError):
    """The broker will not have this member whatever it does; the message says what to change."""
