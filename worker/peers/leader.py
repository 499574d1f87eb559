"""Requests of a worker to the leader: store task configs, and fence earlier source tasks (KIP-507, KIP-618).

Both are repeated if there is no answer, and both are idempotent: a crash on either side loses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

import orjson

from connect.errors import ConnectError, NotFoundError
from worker.errors import BadRequestError, ForbiddenError, RebalanceInProgressError, UnavailableError
from worker.peers.client import PeerClient
from worker.security.request_signatures import worker_headers
from worker.security.session_keys import MISSING_SIGNATURE, sign
from worker.stores.config.store import SessionKey

__all__ = ["PUBLICATION_HEADER", "LeaderClient", "Publication"]

_THREADS: Final = 4
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_ERRORS: Final[Mapping[int, Callable[[str], ConnectError]]] = {
    HTTPStatus.BAD_REQUEST: BadRequestError,
    HTTPStatus.FORBIDDEN: ForbiddenError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: RebalanceInProgressError,
    HTTPStatus.SERVICE_UNAVAILABLE: UnavailableError,
}

PUBLICATION_HEADER: Final = "X-Sluice-Publication"
"""The header that carries :meth:`Publication.text`."""

_TEXT: Final = re.compile(r"(\d{1,10}) ([0-9a-f]{1,32}) (\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Publication:
    """The number of a publication, with the sender's generation and process."""

    generation: int
    process: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Publication:
        """Parse the result of :meth:`text`. Raises :class:`~worker.errors.BadRequestError` for any other text."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadRequestError(
                f"{PUBLICATION_HEADER} must be a generation, a process and a number, separated by spaces. Only workers "
                "send it."
            )
        return cls(int(found[1]), found[2], int(found[3]))

    def text(self) -> str:
        """Return the value of the header."""
        return f"{self.generation} {self.process} {self.number}"


class LeaderClient:
    """Sends requests to the leader from its own threads; futures fail with a :class:`~connect.errors.ConnectError`.

    ``algorithm`` is ``inter.worker.signature.algorithm``. Without a key (the cluster's protocol is not ``sessioned``)
    requests are not signed. The signature covers the whole request; a Kafka Connect leader requires a signature of the
    body alone, and gets one when it refuses the first.
    """

    def __init__(self, peers: PeerClient, algorithm: str, worker_id: str = "") -> None:
        self._peers = peers
        self._algorithm = algorithm
        self._worker_id = worker_id
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="leader-client")

    def post_task_configs(
        self,
        url: str,
        connector: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication,
        key: SessionKey | None,
    ) -> Future[None]:
        """Send the task configs of a connector to the leader at ``url``.

        The publication number is not signed: anyone able to change a header could drop the request as well.
        """
        body = orjson.dumps([dict(config) for config in configs])
        headers = {PUBLICATION_HEADER: publication.text()}
        return self._submit(
            "POST", f"{url.rstrip('/')}/connectors/{quote(connector, safe='')}/tasks", body, key, headers
        )

    def fence(self, url: str, connector: str, key: SessionKey | None) -> Future[None]:
        """Ask the leader at ``url`` to fence the earlier source tasks of a connector."""
        return self._submit("PUT", f"{_connector_url(url, connector)}/fence", b"", key)

    def close(self) -> None:
        """Cancel the requests that have not begun; those under way finish on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _submit(
        self, method: str, url: str, body: bytes, key: SessionKey | None, headers: Mapping[str, str] = _NO_HEADERS
    ) -> Future[None]:
        sent = {"Content-Type": "application/json", **headers}
        return self._threads.submit(self._ask, method, url, sent, body, key)

    def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes, key: SessionKey | None) -> None:
        signature = worker_headers(key, self._algorithm, self._worker_id, method, url, body) if key is not None else {}
        answer = self._peers.ask(method, url, {**headers, **signature}, body)
        if key is not None and answer.status == HTTPStatus.BAD_REQUEST and MISSING_SIGNATURE in _message(answer.body):
            answer = self._peers.ask(method, url, {**headers, **sign(key, self._algorithm, body)}, body)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            kind = _ERRORS.get(answer.status, ConnectError)
            raise kind(f"The leader answered {method} {url} with {answer.status}: {_message(answer.body)}")


def _connector_url(url: str, connector: str) -> str:
    return f"{url.rstrip('/')}/connectors/{quote(connector, safe='')}"


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "it did not say why"
