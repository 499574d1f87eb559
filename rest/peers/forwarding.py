"""Forwarding of requests to the worker that can carry them out: the leader, or the owner of the connector or task.

A request is forwarded at most twice: the first worker sends it with ``forward=true``, the second with
``forward=false``, and the third answers 409. It is sent only once: if the other worker dies while it handles the
request, nobody knows whether it was carried out, and the answer is 500, as in Kafka Connect. A crash of the forwarding
worker loses only the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from flask import Flask, Response, request

from rest.access.auditing import mark_relayed
from rest.http.errors import error_answer
from rest.http.paths import raw_path
from rest.peers.identities import Identities
from rest.server.threads import THREADS, RequestKind
from worker.errors import ConflictError, ForwardingError, NotAssignedError, NotLeaderError, UnavailableError
from worker.peers.client import PeerAnswer, PeerClient
from worker.peers.leader import PUBLICATION_HEADER
from worker.security.request_signatures import REQUEST_SIGNATURE_HEADER
from worker.security.session_keys import ALGORITHM_HEADER, SIGNATURE_HEADER

__all__ = ["MOST_FORWARDS", "Forwarding"]

MOST_FORWARDS: Final = THREADS[RequestKind.OTHER] // 2
"""How many requests a worker passes on at once. Each takes a thread until it is answered; a leader that hangs must not
take all of them, since this worker must always answer what it can by itself."""

_FORWARD: Final = "forward"
# Other headers concern only the client and this worker. The body's signature stays valid with the unchanged body.
_PASSED_ON: Final = ("Content-Type", "If-Match", SIGNATURE_HEADER, ALGORITHM_HEADER, PUBLICATION_HEADER)
_CREDENTIALS: Final = "Authorization"
_OF_WORKERS: Final = "internal."


class Forwarding:
    """Makes an app forward the requests that only another worker can carry out.

    With authentication (``names_callers``) a request is forwarded in the name of its caller, signed by ``identities``,
    and never with the caller's credentials: the URL is whatever the other worker has announced to the group.
    """

    def __init__(self, peers: PeerClient, identities: Identities | None = None, *, names_callers: bool = False) -> None:
        self._peers = peers
        self._identities = identities
        self._names_callers = names_callers
        self._free = threading.BoundedSemaphore(MOST_FORWARDS)

    def put_on(self, app: Flask) -> None:
        """Forward each request for which a resource of ``app`` raises the URL of the responsible worker."""
        app.register_error_handler(NotLeaderError, self._forward)
        app.register_error_handler(NotAssignedError, self._forward)

    def _forward(self, error: NotLeaderError | NotAssignedError) -> Response:
        try:
            url = _target(error.url, request.args.get(_FORWARD))
            headers = self._headers(url)
            with self._place():
                answer = self._peers.ask(request.method, url, headers, request.get_data())
            mark_relayed()
            return _relayed(answer)
        except (ConflictError, ForwardingError, UnavailableError) as refused:
            return error_answer(refused)

    def _headers(self, url: str) -> dict[str, str]:
        """Return the headers to forward a request with, among them who forwards it."""
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        if self._identities is not None and REQUEST_SIGNATURE_HEADER in request.headers and _is_of_workers():
            return headers | self._identities.of_worker(request.method, url, request.get_data())
        if self._identities is not None and self._names_callers and not _is_of_workers():
            return headers | self._identities.of_caller(request.method, url, request.get_data())
        if _CREDENTIALS in request.headers and not self._names_callers:
            headers[_CREDENTIALS] = request.headers[_CREDENTIALS]
        return headers

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._free.acquire(blocking=False):
            raise UnavailableError(
                f"This worker already waits for the answers to {MOST_FORWARDS} forwarded requests. Try again in a "
                "moment, or send the request to the leader."
            )
        try:
            yield
        finally:
            self._free.release()


def _is_of_workers() -> bool:
    """Return whether this is a request between workers; its signature was checked before it proved to be for
    another.
    """
    return (request.endpoint or "").startswith(_OF_WORKERS)


def _target(url: str | None, forward: str | None) -> str:
    """Return the URL to forward to. Raises :class:`~worker.errors.ConflictError` if forwarding is not possible."""
    if forward is not None and forward.lower() != "true":
        raise ConflictError("Cannot complete request because of a conflicting operation (e.g. worker rebalance)")
    if url is None:
        raise ConflictError(
            "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
        )
    others = parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True)
    query = [(name, value) for name, value in others if name != _FORWARD]
    query.append((_FORWARD, "true" if forward is None else "false"))
    return f"{url.rstrip('/')}{raw_path(request.environ)}?{urlencode(query)}"


def _relayed(answer: PeerAnswer) -> Response:
    response = Response(answer.body, answer.status)
    response.headers.pop("Content-Type", None)
    if answer.content_type is not None:
        response.headers["Content-Type"] = answer.content_type
    if answer.location is not None:
        # The client can reach this worker, which serves the new resource as well.
        response.headers["Location"] = urljoin(request.host_url, urlsplit(answer.location).path)
    return response
