"""Sessions of people who have signed in on the web page. They are kept in memory and end with the worker."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from worker.security.principals import Principal

__all__ = ["Sessions"]

_MOST_SESSIONS: Final = 10_000
_IDLE_SECONDS: Final = 1800.0
_LONGEST_SECONDS: Final = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class _Session:
    principal: Principal
    still_holds: Callable[[], bool]
    ends: float
    idle_ends: float


class Sessions:
    """Sessions by a secret, which a browser keeps in a cookie. May be used by any thread.

    A session ends half an hour after its last use, and at most twelve hours after it began. There are 10,000 at most; a
    new one replaces the one that has been unused for longest.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._one_at_a_time = threading.Lock()

    def begin(self, principal: Principal, still_holds: Callable[[], bool]) -> str:
        """Begin a session and return its secret. It ends early once ``still_holds`` returns false."""
        secret = secrets.token_urlsafe(32)
        now = self._clock()
        with self._one_at_a_time:
            self._sessions[secret] = _Session(principal, still_holds, now + _LONGEST_SECONDS, now + _IDLE_SECONDS)
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return secret

    def principal(self, secret: str) -> Principal | None:
        """Return the session's principal; ``None`` if it does not exist any more."""
        now = self._clock()
        with self._one_at_a_time:
            session = self._sessions.pop(secret, None)
            if session is None or now >= min(session.ends, session.idle_ends):
                return None
            self._sessions[secret] = replace(session, idle_ends=now + _IDLE_SECONDS)
        # This may fetch an issuer's keys, so it must not block others.
        if not session.still_holds():
            self.end(secret)
            return None
        return session.principal

    def end(self, secret: str) -> None:
        """End a session."""
        with self._one_at_a_time:
            self._sessions.pop(secret, None)
