"""What can be wrong with a binary log."""

from __future__ import annotations

from connect.errors import ConnectError

__all__ = ["BinlogError"]


class BinlogError(ConnectError):
    """An event that is damaged, or that this reader does not know how to read."""
