"""Limits the number of requests that one address may send."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, jsonify, request

from rest.access.access import path_of_rule
from rest.access.rights import Who, need_of
from worker.security.request_signatures import InName

__all__ = ["RequestRate"]

_MOST_ADDRESSES: Final = 10_000
_BURST: Final = 3


class RequestRate:
    """Limits each address to an average number of requests per second, and answers 429 beyond that.

    Requests from other workers, and requests that they relay (``passed_on``), do not count: they were counted there.
    """

    def __init__(
        self,
        per_second: int,
        passed_on: Callable[[], InName | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._passed_on = passed_on
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._one_at_a_time = threading.Lock()

    def put_on(self, app: Flask) -> None:
        """Count each request of the app."""
        app.before_request(self._check)

    def take(self, address: str) -> bool:
        """Count a request from an address; return whether it may be answered."""
        most = float(self._per_second * _BURST)
        with self._one_at_a_time:
            now = self._clock()
            left, since = self._left.pop(address, (most, now))
            left = min(most, left + (now - since) * self._per_second)
            self._left[address] = (left - 1 if left >= 1 else left, now)
            while len(self._left) > _MOST_ADDRESSES:
                self._left.popitem(last=False)
        return left >= 1

    def _check(self) -> Response | None:
        if need_of(path_of_rule(), request.method) is Who.WORKERS or self._passed_on() is not None:
            return None
        if self.take(request.remote_addr or ""):
            return None
        status = HTTPStatus.TOO_MANY_REQUESTS
        message = f"This worker answers {self._per_second} requests per second to one address. Try again later."
        answer = jsonify({"error_code": int(status), "message": message})
        answer.status_code = status
        answer.headers["Retry-After"] = "1"
        return answer
