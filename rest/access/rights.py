"""The right that each request needs: one table of every path and method of the API.

Where clients authenticate, a request that is not in the table is refused; a test checks that all are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from worker.security.permissions import Right

__all__ = ["NEEDS", "InBody", "Need", "Who", "need_of"]


class Who(Enum):
    """Who may send a request that needs no right."""

    ANYBODY = "anybody"
    PROBES = "anybody, if rest.authentication.health.open is set"
    SIGNED_IN = "whoever has signed in"
    """The answer is restricted to what the caller may see."""
    WORKERS = "workers"
    """The request carries a signature in place of credentials."""


@dataclass(frozen=True, slots=True)
class InBody:
    """A right on the connectors named in the request's body, which the resource checks once it has read it."""

    right: Right


Need: TypeAlias = Right | Who | InBody

_CONNECTOR: Final = "/connectors/{name}"
_FLOW: Final = "/mirror/flows/{flow}"

NEEDS: Final[Mapping[str, Mapping[str, Need]]] = {
    "/": {"GET": Who.SIGNED_IN},
    "/health": {"GET": Who.PROBES},
    "/health/live": {"GET": Who.PROBES},
    "/health/ready": {"GET": Who.PROBES},
    "/openapi.json": {"GET": Who.SIGNED_IN},
    "/metrics": {"GET": Right.METRICS},
    "/cluster": {"GET": Right.CLUSTER},
    "/cluster/workers/{worker}/drain": {"PUT": Right.ADMIN, "DELETE": Right.ADMIN},
    "/whoami": {"GET": Who.SIGNED_IN},
    "/session": {"POST": Who.ANYBODY, "DELETE": Who.ANYBODY},
    "/connectors": {"GET": Who.SIGNED_IN, "POST": InBody(Right.EDIT)},
    _CONNECTOR: {"GET": Right.VIEW, "DELETE": Right.DELETE},
    f"{_CONNECTOR}/config": {"GET": Right.CONFIGS, "PUT": InBody(Right.EDIT), "PATCH": InBody(Right.EDIT)},
    f"{_CONNECTOR}/config/history": {"GET": Right.CONFIGS},
    f"{_CONNECTOR}/config/history/{{version}}/restore": {"POST": InBody(Right.EDIT)},
    f"{_CONNECTOR}/status": {"GET": Right.VIEW},
    f"{_CONNECTOR}/loads": {"GET": Right.VIEW},
    f"{_CONNECTOR}/measurements": {"GET": Right.VIEW},
    f"{_CONNECTOR}/logs": {"GET": Right.VIEW},
    f"{_CONNECTOR}/history": {"GET": Right.VIEW},
    f"{_CONNECTOR}/timeline": {"GET": Right.VIEW},
    f"{_CONNECTOR}/restart": {"POST": Right.OPERATE},
    f"{_CONNECTOR}/signals": {"POST": Right.OPERATE},
    f"{_CONNECTOR}/pause": {"PUT": Right.OPERATE},
    f"{_CONNECTOR}/resume": {"PUT": Right.OPERATE},
    f"{_CONNECTOR}/stop": {"PUT": Right.OPERATE},
    f"{_CONNECTOR}/tasks": {"GET": Right.CONFIGS, "POST": Who.WORKERS},
    f"{_CONNECTOR}/tasks/{{task}}/status": {"GET": Right.VIEW},
    f"{_CONNECTOR}/tasks/{{task}}/restart": {"POST": Right.OPERATE},
    f"{_CONNECTOR}/fence": {"PUT": Who.WORKERS},
    f"{_CONNECTOR}/topics": {"GET": Right.VIEW},
    f"{_CONNECTOR}/topics/reset": {"PUT": Right.OPERATE},
    f"{_CONNECTOR}/offsets": {"GET": Right.VIEW, "PATCH": Right.OFFSETS, "DELETE": Right.OFFSETS},
    f"{_CONNECTOR}/offsets/reset": {"POST": Right.OFFSETS},
    f"{_CONNECTOR}/lag": {"GET": Right.VIEW},
    f"{_CONNECTOR}/dlq": {"GET": Right.DEAD_LETTERS},
    f"{_CONNECTOR}/dlq/replay": {"POST": Right.REPLAY},
    f"{_CONNECTOR}/dlq/{{record}}": {"GET": Right.DEAD_LETTERS},
    f"{_CONNECTOR}/dlq/{{record}}/repair": {"POST": Right.REPAIR},
    f"{_CONNECTOR}/preview": {"POST": Right.PREVIEW},
    "/mirror/flows": {"GET": Who.SIGNED_IN},
    _FLOW: {"GET": InBody(Right.VIEW), "PUT": InBody(Right.EDIT), "DELETE": InBody(Right.DELETE)},
    f"{_FLOW}/pause": {"PUT": InBody(Right.OPERATE)},
    f"{_FLOW}/resume": {"PUT": InBody(Right.OPERATE)},
    f"{_FLOW}/stop": {"PUT": InBody(Right.OPERATE)},
    "/history": {"GET": Who.SIGNED_IN},
    "/connector-plugins": {"GET": Who.SIGNED_IN},
    "/connector-plugins/{plugin}/config": {"GET": Who.SIGNED_IN},
    "/connector-plugins/{plugin}/config/validate": {"PUT": InBody(Right.EDIT)},
    "/connector-plugins/{plugin}/config/choices": {"PUT": InBody(Right.EDIT)},
    "/connector-plugins/{plugin}/config/preview": {"POST": InBody(Right.PREVIEW)},
    "/admin/loggers": {"GET": Right.CLUSTER},
    "/admin/loggers/{logger}": {"GET": Right.CLUSTER, "PUT": Right.ADMIN},
}
"""The paths as the OpenAPI document has them. ``HEAD`` needs what ``GET`` needs."""


def need_of(path: str, method: str) -> Need | None:
    """Return what a request needs, by its path in the OpenAPI document; ``None`` if it is not in the table."""
    if method == "OPTIONS":
        return Who.SIGNED_IN
    return NEEDS.get(path, {}).get("GET" if method == "HEAD" else method)
