"""The HTTP client for requests to other workers of the cluster."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from worker.errors import ForwardingError

__all__ = ["PeerAnswer", "PeerClient"]

_CONNECT_SECONDS: Final = 10.0
# A worker whose own wait times out answers with the reason, and needs time to do so.
_LONGER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """The answer of another worker."""

    status: int
    body: bytes
    content_type: str | None
    location: str | None


class PeerClient:
    """Sends requests to other workers over persistent connections. Thread-safe.

    ``tls`` is for workers reached over https; ``timeout`` is the request timeout in seconds, and ``connections`` are
    those kept to a worker.
    """

    def __init__(self, tls: ssl.SSLContext | None, timeout: float, connections: int) -> None:
        self._adapter = _Adapter(tls, connections)
        self._timeout = timeout

    def ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> PeerAnswer:
        """Send one request and return its answer. Raises :class:`~worker.errors.ForwardingError` if there is none."""
        try:
            prepared = requests.Request(method, url, headers=dict(headers), data=body or None).prepare()
            # ``prepare`` drops the path segment of a connector whose name is one or two dots.
            prepared.url = url
            answer = self._adapter.send(
                prepared, timeout=(_CONNECT_SECONDS, self._timeout + _LONGER_SECONDS), verify=True
            )
            content = answer.content
        except (requests.RequestException, OSError) as error:
            at = urlsplit(url)
            reason = f"{_reason(error)} ({at.scheme}://{at.netloc}/). {_advice(error)}"
            raise ForwardingError(f"IO Error trying to forward REST request: {reason}") from error
        return PeerAnswer(
            answer.status_code, content, answer.headers.get("Content-Type"), answer.headers.get("Location")
        )

    def close(self) -> None:
        """Close the connections."""
        self._adapter.close()


class _Adapter(HTTPAdapter):
    """Connections with our own TLS context; requests would also trust its bundled list of authorities.

    It is used without a ``requests.Session``, which would take proxies and passwords from the environment.
    """

    def __init__(self, tls: ssl.SSLContext | None, connections: int) -> None:
        self._tls = tls
        super().__init__(pool_maxsize=connections)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        if self._tls is not None:
            options |= {"ssl_context": self._tls, "assert_hostname": None if self._tls.check_hostname else False}
        super().init_poolmanager(*args, **options)

    def cert_verify(self, conn: Any, *_: Any) -> None:
        conn.cert_reqs = "CERT_REQUIRED"


def _reason(error: BaseException) -> str:
    """Return the reason given by the operating system or TLS, without the request URL that requests repeats."""
    reason = type(error).__name__
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or reason
        elif isinstance(cause, OSError) and cause.strerror:
            reason = cause.strerror
    return "no answer in time" if isinstance(error, requests.ReadTimeout) else reason


def _advice(error: BaseException) -> str:
    """Return advice on what to do next: a request that never reached the other worker can simply be sent again."""
    if isinstance(error, requests.exceptions.SSLError):
        return "Check that the workers trust each other's certificates"
    if isinstance(error, requests.ConnectTimeout) or any(
        isinstance(it, ConnectionRefusedError) for it in _causes(error)
    ):
        return "That worker is not listening, so nothing was done: try again once the cluster has noticed"
    return "That worker may have carried out the request: check before you repeat it"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
