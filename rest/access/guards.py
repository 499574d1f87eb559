"""What stands before the resources of an app: its names, how much it answers, who may ask, and what is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from flask import Flask, request

from connect.config.validators import matches_wildcard
from rest.access.access import Access
from rest.access.auditing import Auditing
from rest.access.rates import RequestRate
from worker.errors import ForbiddenError

__all__ = ["NO_GUARDS", "AllowedHosts", "Guards"]


class AllowedHosts:
    """Refuses requests to names that are not this worker's, so that no page can have a name of its own lead here."""

    def __init__(self, patterns: Sequence[str], own: str) -> None:
        self._patterns = tuple(pattern.strip().lower() for pattern in (*patterns, own, "localhost"))

    def put_on(self, app: Flask) -> None:
        """Look at the header ``Host`` of each request first."""
        app.before_request(self._check)

    def allows(self, host: str) -> bool:
        """Whether a request may be sent to this value of ``Host``: a name or an address, with or without a port."""
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
    """The guards of an app, in the order in which they look at a request; what is ``None`` is not asked for."""

    hosts: AllowedHosts | None = None
    rate: RequestRate | None = None
    access: Access | None = None
    auditing: Auditing | None = None

    def put_on(self, app: Flask) -> None:
        """Have them look at each request before its resource does."""
        for guard in (self.hosts, self.rate, self.access, self.auditing):
            if guard is not None:
                guard.put_on(app)

    def warnings(self) -> list[str]:
        """Say what an operator should mend."""
        return [] if self.access is None else self.access.warnings()


NO_GUARDS: Final = Guards()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
