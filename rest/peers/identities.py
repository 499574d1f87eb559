"""In whose name workers ask each other: identities, signed by the session key of the cluster."""

from __future__ import annotations

import time
from typing import Final

from flask import g, request

from rest.access.caller import caller
from rest.http.paths import sent_path
from rest.http.waiting import Patience
from worker.errors import UnavailableError
from worker.herder.cluster.peer_requests import PeerRequests
from worker.security.principals import WORKER_MECHANISM, Principal
from worker.security.request_signatures import (
    IDENTITY_HEADER,
    REQUEST_SIGNATURE_HEADER,
    InName,
    WholeRequest,
    sign_whole,
)
from worker.security.session_keys import SignedRequest
from worker.stores.config.store import SessionKey

__all__ = ["Identities", "current_request", "worker_headers"]

_PATIENCE: Final = 30.0
_TOLD: Final = "sluice_told"


class Identities:
    """Signs what this worker passes on, and reads who has asked what another has passed on.

    ``algorithm`` is ``inter.worker.signature.algorithm``. May be used by any thread.
    """

    def __init__(self, peers: PeerRequests, algorithm: str, worker_id: str) -> None:
        self._peers = peers
        self._algorithm = algorithm
        self._worker_id = worker_id
        self._patience = Patience(_PATIENCE)

    def of_caller(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers for a request that is passed on in the name of the caller of the current one."""
        who = caller()
        name = InName(who.principal, who.address or request.remote_addr or "", self._worker_id)
        whole = WholeRequest(method, url, body, name.text())
        return sign_whole(self._key(), self._algorithm, whole, _now_ms())

    def of_worker(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers for a request of workers' own that is passed on."""
        return worker_headers(self._key(), self._algorithm, self._worker_id, method, url, body)

    def told(self) -> InName | None:
        """Return who has asked, as the worker says that has passed the current request on; ``None`` if none has.

        Raises :class:`~connect.errors.ConnectError` unless it is signed by a worker of this cluster.
        """
        identity = request.headers.get(IDENTITY_HEADER)
        if identity is None or REQUEST_SIGNATURE_HEADER not in request.headers:
            return None
        if _TOLD not in g:
            # A signature is good for once.
            self._patience.wait(self._peers.verify(current_request()))
            setattr(g, _TOLD, InName.parse(identity))
        told: InName = g.get(_TOLD)
        return told

    def _key(self) -> SessionKey:
        key = self._patience.wait(self._peers.session_key())
        if key is None:
            raise UnavailableError(
                "This worker knows no session key yet, by which it would say to another worker who has asked. Ask "
                "again in a moment."
            )
        return key


def worker_headers(
    key: SessionKey, algorithm: str, worker_id: str, method: str, url: str, body: bytes
) -> dict[str, str]:
    """Return the headers for a request of a worker's own to another."""
    name = InName(Principal(worker_id, WORKER_MECHANISM), "", worker_id)
    return sign_whole(key, algorithm, WholeRequest(method, url, body, name.text()), _now_ms())


def current_request() -> SignedRequest:
    """Return the current request as its sender has signed it."""
    body, query = request.get_data(), request.query_string.decode("latin-1")
    whole = WholeRequest(
        request.method, f"{sent_path(request.environ)}?{query}", body, request.headers.get(IDENTITY_HEADER, "")
    )
    return SignedRequest(body, None, None, whole, request.headers.get(REQUEST_SIGNATURE_HEADER))


def _now_ms() -> int:
    return int(time.time() * 1000)
