"""One connection over which messages come: lines or counted ones, or RELP; plain, or encrypted."""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Final

from connectors.syslog.framing import Framer, Frames
from connectors.syslog.inbox import Messages
from connectors.syslog.relp import RelpError, RelpFrames, RelpSession, acknowledgement

__all__ = ["Receipt", "StreamConnection", "StreamLimits"]

_log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 262_144
_MOST_UNSENT_BYTES: Final = 1 << 20
_HANDSHAKE_SECONDS: Final = 10.0
_LONGEST_MESSAGE_SECONDS: Final = 60.0
_COMPLAINT_SECONDS: Final = 60.0


@dataclass(slots=True)
class StreamLimits:
    """What a connection may do. A complaint about one is logged once a minute."""

    most_message_bytes: int
    most_connections: int
    idle_seconds: float
    is_relp: bool = False
    _complained_at: float = field(default=float("-inf"))

    def complain(self, text: str) -> None:
        """Log a warning, unless there was one in the last minute."""
        now = time.monotonic()
        if now - self._complained_at >= _COMPLAINT_SECONDS:
            self._complained_at = now
            _log.warning("%s", text)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What to acknowledge a message with."""

    connection: StreamConnection
    transaction: int


class StreamConnection:
    """A connection. Used by the receiver's thread alone."""

    def __init__(self, accepted: socket.socket, sender: str, limits: StreamLimits, tls: ssl.SSLContext | None) -> None:
        accepted.setblocking(False)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket: socket.socket = (
            accepted if tls is None else tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        )
        self.descriptor = self.socket.fileno()
        self.sender = sender
        self.limits = limits
        self.interest = 0
        self.is_at_end = False
        self.is_closed = False
        self.complaint = ""
        self._framer: Framer | RelpSession = (
            RelpSession(limits.most_message_bytes) if limits.is_relp else Framer(limits.most_message_bytes)
        )
        self._shakes_hands = tls is not None
        self._writes_first = False
        self._unsent = bytearray()
        self._began = self._heard = self._message_began = time.monotonic()

    def receive(self) -> Messages | None:
        """Take what has come, and send what waits to be sent."""
        data: bytes | None = None
        self._writes_first = False
        try:
            if self._shakes_hands:
                self._shake_hands()
            self._send()
            data = self.socket.recv(_CHUNK_BYTES)
        except ssl.SSLWantWriteError:
            self._writes_first = True
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            pass
        except ssl.SSLError as error:
            self._break(f"TLS failed: {error.reason or error}")
        except OSError as error:
            # A sender that is killed resets its connections: nothing to complain about.
            self._break("" if isinstance(error, ConnectionError) else str(error.strerror or error))
        if data:
            return self._divided(data)
        self.is_at_end = self.is_at_end or data is not None
        return None

    def last_messages(self) -> Messages | None:
        """Return what is left at the end."""
        return self._messages(self._framer.finish())

    def acknowledge(self, transactions: list[int]) -> None:
        """Answer that messages are safe."""
        self._answer(b"".join(map(acknowledgement, transactions)))

    def say_goodbye(self) -> None:
        """Tell the sender that nothing more will be read; what it has sent before still is."""
        if self.limits.is_relp or self.is_closed:
            # Its messages are safe with the sender until they are acknowledged.
            return
        try:
            # That of an encrypted socket would end the decryption of what still comes.
            socket.socket.shutdown(self.socket, socket.SHUT_WR)
        except OSError:
            self.is_at_end = True

    def is_late(self, now: float, deaf_until: float) -> bool:
        """Whether the peer takes too long for a handshake or a message, or has been silent for too long.

        Until ``deaf_until`` nothing was received from it, whatever it sent.
        """
        silent = now - max(self._heard, deaf_until)
        if self._shakes_hands and now - max(self._began, deaf_until) > _HANDSHAKE_SECONDS:
            self.complaint = f"no TLS handshake within {_HANDSHAKE_SECONDS:.0f} s; does it send without TLS?"
        elif self._framer.is_within_message and now - max(self._message_began, deaf_until) > _LONGEST_MESSAGE_SECONDS:
            self.complaint = f"no end of a message within {_LONGEST_MESSAGE_SECONDS:.0f} s"
        elif 0 < self.limits.idle_seconds < silent:
            return True
        return bool(self.complaint)

    def wanted_events(self) -> int:
        """Return what to wait for."""
        if self._unsent or self._writes_first:
            return selectors.EVENT_READ | selectors.EVENT_WRITE
        return selectors.EVENT_READ

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        if self._unsent:
            try:
                self._send()
            except OSError:
                self._unsent.clear()
        self.socket.close()

    def _shake_hands(self) -> None:
        assert isinstance(self.socket, ssl.SSLSocket)
        self.socket.do_handshake()
        self._shakes_hands = False

    def _divided(self, data: bytes) -> Messages | None:
        self._heard = time.monotonic()
        was_within = self._framer.is_within_message
        try:
            frames = self._framer.feed(data)
        except RelpError as error:
            self._break(str(error))
            return None
        if frames.messages or not was_within:
            self._message_began = self._heard
        if isinstance(frames, RelpFrames):
            self.is_at_end = frames.is_closed
            if frames.answers:
                self._answer(frames.answers)
        return self._messages(frames)

    def _messages(self, frames: Frames) -> Messages | None:
        if not frames.messages:
            return None
        receipts = (
            [Receipt(self, transaction) for transaction in frames.transactions]
            if isinstance(frames, RelpFrames)
            else ()
        )
        return Messages(frames.messages, [self.sender] * len(frames.messages), time.time(), frames.cut, receipts)

    def _answer(self, data: bytes) -> None:
        self._unsent += data
        if len(self._unsent) > _MOST_UNSENT_BYTES:
            self._break("it does not read the acknowledgements")
            return
        try:
            self._send()
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:
            self.is_at_end = True

    def _send(self) -> None:
        while self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            del self._unsent[:sent]

    def _break(self, complaint: str) -> None:
        self.is_at_end = True
        self.complaint = complaint
