"""What stands before the resources of an app: its names, how much it answers, who may ask, and what is written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flask import Flask

from rest.access.access import Access, AllowedHosts
from rest.access.auditing import Auditing
from rest.access.rates import RequestRate

__all__ = ["NO_GUARDS", "Guards"]


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
