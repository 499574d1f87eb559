"""The checks in front of an app's resources: host names, request rate, access rights and the audit log."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from flask import Flask, Response, jsonify, request

from connect.config.validators import matches_wildcard
from rest.access.access import Access, path_of_rule
from rest.access.auditing import Auditing
from rest.access.rights import Who, need_of
from worker.errors import ForbiddenError
from worker.security.request_signatures import InName

__all__ = ["NO_GUARDS", "AllowedHosts", "Guards", "RequestRate"]


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


class AllowedHosts:
    """Refuses requests for foreign host names, which prevents DNS rebinding by malicious web pages."""

    def __init__(self, patterns: Sequence[str], own: str) -> None:
        self._patterns = tuple(pattern.strip().lower() for pattern in (*patterns, own, "localhost"))

    def put_on(self, app: Flask) -> None:
        """Check the ``Host`` header of each request first."""
        app.before_request(self._check)

    def allows(self, host: str) -> bool:
        """Return whether a ``Host`` header, a name or an address with or without a port, is allowed."""
        name = (host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]).lower()
        return _is_address(name.strip("[]")) or any(matches_wildcard(pattern, name) for pattern in self._patterns)

    def _check(self) -> None:
        if not self.allows(request.host):
            raise ForbiddenError(
                "This worker does not answer to the host name of this request. To allow it, add it to "
                "rest.allowed.hosts in the worker's configuration."
            )


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of an app, in the order in which they check a request; ``None`` switches a guard off."""

    hosts: AllowedHosts | None = None
    rate: RequestRate | None = None
    access: Access | None = None
    auditing: Auditing | None = None

    def put_on(self, app: Flask) -> None:
        """Check each request before it reaches its resource."""
        for guard in (self.hosts, self.rate, self.access, self.auditing):
            if guard is not None:
                guard.put_on(app)

    def warnings(self) -> list[str]:
        """Return warnings about problems that an operator should fix."""
        return [] if self.access is None else self.access.warnings()


NO_GUARDS: Final = Guards()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
