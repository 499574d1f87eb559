"""The pod of a worker in Kubernetes, in which a driver of Spark runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["pod_settings"]

_MASTER: Final = "k8s://"
_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"


def _own_address() -> str:
    return socket.gethostbyname(socket.gethostname())


def pod_settings(
    master: str, environ: Mapping[str, str] = os.environ, address: Callable[[], str] = _own_address
) -> dict[str, str]:
    """The settings with which executors in Kubernetes reach a driver that runs in a pod; none anywhere else.

    By itself Spark tells them the pod's name, which has an address only if a service gives it one.
    """
    if not master.startswith(_MASTER) or _IN_A_POD not in environ:
        return {}
    try:
        return {"spark.driver.host": address()}
    except OSError:
        return {}
