"""Identities of callers in requests between workers, signed with the cluster's session key."""

from __future__ import annotations

from typing import Final

from flask import g, request

from rest.access.caller import caller
from rest.http.paths import sent_path
from rest.http.timeouts import Patience
from worker.errors import UnavailableError
from worker.herder.cluster.peers import Peers
from worker.security.request_signatures import (
    IDENTITY_HEADER,
    REQUEST_SIGNATURE_HEADER,
    InName,
    WholeRequest,
    now_ms,
    sign_whole,
    worker_headers,
)
from worker.security.session_keys import SignedRequest
from worker.stores.config.store import SessionKey

__all__ = ["Identities", "current_request"]

_PATIENCE_SECONDS: Final = 30.0
_IN_NAME: Final = "sluice_in_name"


class Identities:
    """Signs forwarded requests with the identity of their caller, and reads the identities signed by other workers.

    ``algorithm`` is ``inter.worker.signature.algorithm``. Thread-safe.
    """

    def __init__(self, peers: Peers, algorithm: str, worker_id: str) -> None:
        self._peers = peers
        self._algorithm = algorithm
        self._worker_id = worker_id
        self._patience = Patience(_PATIENCE_SECONDS)

    def of_caller(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers for forwarding the current request in the name of its caller."""
        who = caller()
        name = InName(who.principal, who.address or request.remote_addr or "", self._worker_id)
        whole = WholeRequest(method, url, body, name.text())
        return sign_whole(self._key(), self._algorithm, whole, now_ms())

    def of_worker(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """Return the headers for forwarding a request that another worker has made on its own behalf."""
        return worker_headers(self._key(), self._algorithm, self._worker_id, method, url, body)

    def in_name(self) -> InName | None:
        """Return the caller that a forwarding worker has signed; ``None`` if the current request was not forwarded.

        Raises :class:`~connect.errors.ConnectError` if the signature is not that of a worker of this cluster.
        """
        identity = request.headers.get(IDENTITY_HEADER)
        if identity is None or REQUEST_SIGNATURE_HEADER not in request.headers:
            return None
        if _IN_NAME not in g:
            # A signature is valid only once.
            self._patience.wait(self._peers.verify(current_request()))
            setattr(g, _IN_NAME, InName.parse(identity))
        in_name: InName = g.get(_IN_NAME)
        return in_name

    def _key(self) -> SessionKey:
        key = self._patience.wait(self._peers.session_key())
        if key is None:
            raise UnavailableError(
                "This worker has no session key yet, so it cannot tell another worker who sent this request. Try "
                "again in a moment."
            )
        return key


def current_request() -> SignedRequest:
    """Return the current request in the form that its sender signed."""
    body, query = request.get_data(), request.query_string.decode("latin-1")
    whole = WholeRequest(
        request.method, f"{sent_path(request.environ)}?{query}", body, request.headers.get(IDENTITY_HEADER, "")
    )
    return SignedRequest(body, None, None, whole, request.headers.get(REQUEST_SIGNATURE_HEADER))
