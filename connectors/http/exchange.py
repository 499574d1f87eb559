"""An exchange with a server: what its status means, how long to wait, and when to give up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from connect.errors import ConnectError, DataError
from connect.kits.http.messages import Request, Response, TimedOutError
from connect.kits.http.retries import Backoff, pause_asked, retry_after
from connectors.http.charset import shown_body
from connectors.http.source_config import HttpSourceConfig
from connectors.http.steps import Ask, Outcome, Rest, Steps, TryLater

__all__ = ["Answer", "Exchange", "body_excerpt", "remedy"]

_UNCHANGED: Final = 304
_LIMITED: Final = frozenset({403, 429})
_EXCERPT: Final = 500
_BROKEN_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``has_content`` is false if nothing has changed or there is nothing."""

    response: Response | None = None
    content: Any = None
    has_content: bool = False
    is_silence: bool = False
    """Whether a long-polling server sent nothing within the timeout."""


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    wait: float | None = None
    most_tries: int | None = None


class Exchange:
    """Makes requests as steps, and repeats them according to the options."""

    def __init__(self, config: HttpSourceConfig, read: Callable[[Response], Any]) -> None:
        self._config = config
        self._read = read
        self._process, self._skip, self._retry = config.process, config.skip, config.retry
        self._most_tries = -1 if config.max_retries is None else config.max_retries
        self._backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        self._pause = 0.0

    def answer(self, request: Request, ends: Collection[int] = ()) -> Steps[Answer]:
        """Repeat a request until its answer is read or skipped; the statuses ``ends`` say that there is nothing."""
        tries = 0
        while True:
            if self._pause > 0:
                yield Rest(self._pause)
            outcome = yield Ask(request)
            tries += 1
            self._pause = self._pause_after(outcome)
            judged = self._judged(request, outcome, ends)
            if isinstance(judged, Answer):
                return judged
            limit = self._most_tries if judged.most_tries is None or self._most_tries >= 0 else judged.most_tries
            if 0 <= limit < tries:
                raise ConnectError(f"{judged.reason} (tried {tries} times; see max.retries)")
            self._pause = 0.0
            yield TryLater(judged.reason, self._backoff.seconds(tries) if judged.wait is None else judged.wait)

    def _pause_after(self, outcome: Outcome) -> float:
        """Return the seconds to wait before the next request, whatever it is."""
        least = self._config.http_request_interval_millis / 1000
        limit = pause_asked(outcome.headers, time.time()) if isinstance(outcome, Response) else None
        return max(least, limit or 0.0)

    def _judged(self, request: Request, outcome: Outcome, ends: Collection[int]) -> Answer | _Failure:
        if isinstance(outcome, Response):
            return self._judged_response(request, outcome, ends)
        if isinstance(outcome, TimedOutError) and self._config.http_long_polling:
            return Answer(is_silence=True)
        return _Failure(str(outcome))

    def _judged_response(self, request: Request, outcome: Response, ends: Collection[int]) -> Answer | _Failure:
        status = outcome.status
        if status == _UNCHANGED:
            return Answer(outcome)
        reason = f"{request.shown} was answered with HTTP status {status}"
        if status in self._process:
            try:
                return Answer(outcome, self._read(outcome), has_content=True)
            except DataError as error:
                return _Failure(f"{reason}: {error}", most_tries=_BROKEN_TRIES)
        if status in self._skip:
            return Answer()
        reason += body_excerpt(outcome) + remedy(status)
        now = time.time()
        asked, limit = retry_after(outcome.headers, now), pause_asked(outcome.headers, now)
        is_limited = status in _LIMITED and (asked is not None or limit is not None)
        if status in self._retry or is_limited:
            return _Failure(reason, wait=limit if asked is None else asked)
        if status in ends:
            return Answer()
        raise ConnectError(
            f"{reason}. To read, skip or retry such answers, list the status in http.response.policy.codes.process, "
            ".skip or .retry."
        )


def remedy(status: int) -> str:
    """Return what a user should do about a status that says whose request this is; empty for all others."""
    if status == HTTPStatus.UNAUTHORIZED:
        return ". The server does not accept these credentials: correct the user, the password or the token"
    if status == HTTPStatus.FORBIDDEN:
        return ". The server knows these credentials, but does not allow them this request"
    return ""


def body_excerpt(response: Response, most: int = _EXCERPT) -> str:
    """Return the beginning of a body on one line, for an error; empty if there is none."""
    text = " ".join(shown_body(response, most * 4).split())
    return f": {text[:most]}" if text else ""
