"""The server's side of RELP, the protocol of rsyslog in which each message is acknowledged."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from connectors.syslog.framing import Frames

__all__ = ["RelpError", "RelpFrames", "RelpSession", "acknowledgement", "refusal"]

_HEADER: Final = re.compile(rb"([0-9]{1,9}) ([A-Za-z]{1,32}) ([0-9]{1,9})([ \n])")
_LONGEST_HEADER: Final = 54
_OFFER_BYTES: Final = 4096
_WELCOME: Final = b"200 OK\nrelp_version=0\nrelp_software=sluice\ncommands=syslog"
_CLOSED: Final = b"0 serverclose 0\n"


class RelpError(Exception):
    """The peer does not speak RELP."""


@dataclass(slots=True)
class RelpFrames(Frames):
    """Some messages with their transactions, the answers that are due at once, and whether the peer has closed."""

    transactions: list[int] = field(default_factory=list)
    answers: bytes = b""
    is_closed: bool = False


def acknowledgement(transaction: int) -> bytes:
    """Return the answer that a message is safe."""
    return _answer(transaction, b"200 OK")


def refusal(transaction: int, reason: bytes) -> bytes:
    """Return the answer that a command is refused."""
    return _answer(transaction, b"500 " + reason)


def _answer(transaction: int, data: bytes) -> bytes:
    return b"%d rsp %d %s\n" % (transaction, len(data), data)


class RelpSession:
    """Divides what a client sends. Of messages longer than ``most_bytes`` the rest is skipped as it comes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self._skipped_bytes = 0
        self._is_open = False

    @property
    def is_within_message(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._kept) or self._skipped_bytes > 0

    def feed(self, data: bytes) -> RelpFrames:
        """Return the messages that end in these bytes; raise ``RelpError`` if they are not RELP."""
        frames = RelpFrames()
        self._kept += data
        while not frames.is_closed and self._step(frames):
            pass
        return frames

    def finish(self) -> RelpFrames:
        """Return nothing: a message that is not complete is not acknowledged, and comes again."""
        self._kept.clear()
        return RelpFrames()

    def _step(self, frames: RelpFrames) -> bool:
        """Take one frame; return whether there may be another."""
        if self._skipped_bytes:
            skipped = min(self._skipped_bytes, len(self._kept))
            del self._kept[:skipped]
            self._skipped_bytes -= skipped
            return not self._skipped_bytes and bool(self._kept)
        header = _HEADER.match(self._kept)
        if header is None:
            if len(self._kept) >= _LONGEST_HEADER or not _may_be_header(self._kept):
                raise RelpError("what it sends is not RELP; set its output to RELP, or use SyslogSource for plain TCP")
            return False
        transaction, command, length = int(header[1]), bytes(header[2]).lower(), int(header[3])
        # Without data the blank before it is left out, or not.
        start = header.end() - (0 if header[4] == b" " else 1)
        most = self._most_bytes if command == b"syslog" else _OFFER_BYTES
        taken = min(length, most)
        if len(self._kept) < start + taken + (taken == length):
            return False
        data = bytes(self._kept[start : start + taken])
        if taken == length and self._kept[start + taken] != 0x0A:
            raise RelpError("a frame does not end where it says")
        del self._kept[: start + taken + (taken == length)]
        self._skipped_bytes = 0 if taken == length else length - taken + 1
        self._take(frames, transaction, command, data, cut=taken < length)
        return True

    def _take(self, frames: RelpFrames, transaction: int, command: bytes, data: bytes, *, cut: bool) -> None:
        match command:
            case b"open":
                self._is_open = True
                frames.answers += _answer(transaction, _WELCOME)
            case b"close":
                frames.answers += _answer(transaction, b"200 OK") + _CLOSED
                frames.is_closed = True
            case b"syslog" if self._is_open:
                before = len(frames.messages)
                frames.add(data, cut=cut)
                if len(frames.messages) == before:
                    frames.answers += acknowledgement(transaction)
                else:
                    frames.transactions.append(transaction)
            case _:
                frames.answers += refusal(transaction, b"open the session with commands=syslog first")


def _may_be_header(kept: bytearray) -> bool:
    return re.fullmatch(rb"(?:[0-9]{1,9}(?: (?:[A-Za-z]{1,32}(?: (?:[0-9]{1,9})?)?)?)?)?", kept) is not None
