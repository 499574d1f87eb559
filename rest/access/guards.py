"""The checks in front of an app's resources: host names, request rate, access rights and the audit log."""

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
