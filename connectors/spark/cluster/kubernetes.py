"""Settings for a Spark driver that runs in the pod of a worker in Kubernetes."""

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
    """Return the settings with which executors in Kubernetes reach a driver in a pod; none anywhere else.

    Spark's default is the pod's name, which resolves only if a service gives it an address.
    """
    if not master.startswith(_MASTER) or _IN_A_POD not in environ:
        return {}
    try:
        return {"spark.driver.host": address()}
    except OSError:
        return {}
