"""The HTTP client of the connectors: requests with credentials, checked redirects, bounded bodies."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from connect.hosts import HostDeniedError
from connectors.http.client.authentication import authentication
from connectors.http.client.client_config import ClientConfig
from connectors.http.client.connections import CheckedAdapter, Connections
from connectors.http.client.messages import (
    BrokenResponseError,
    NoAnswerError,
    Request,
    Response,
    TimedOutError,
    UntrustedError,
    origin,
    shown_address,
)
from connectors.http.client.tls import tls_context

__all__ = ["HttpClient", "Stream"]

_log = logging.getLogger(__name__)
_PART: Final = 1 << 16
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD: Final = frozenset({307, 308})
_SAFE: Final = frozenset({"GET", "HEAD"})
_MOST_HOPS: Final = 5
_PUBLIC_HEADERS: Final = frozenset({"accept", "user-agent", "accept-encoding", "last-event-id"})
"""Headers that another host may be sent, too: they have no credentials."""


class Stream:
    """A response whose body is still arriving; closing it ends the connection."""

    def __init__(self, response: requests.Response, url: str) -> None:
        self.status = response.status_code
        self.headers = _headers(response)
        self.url = url
        self._response = response

    def read(self) -> bytes:
        """Return the next bytes as soon as there are some; empty at the end."""
        with _told_errors(self.url):
            part: bytes = self._response.raw.read1(_PART, decode_content=True)
            return part

    def close(self) -> None:
        """Close the connection, whatever is left of the body."""
        self._response.close()

    def finish(self) -> None:
        """Return the connection to the pool, after the body has been read to its end."""
        self._response.raw.release_conn()


class HttpClient:
    """Sends requests. Thread-safe; :meth:`abort` ends all waiting."""

    def __init__(self, config: ClientConfig, most_connections: int = 1) -> None:
        self._config = config
        if config.http_ssl_trust_all_certs:
            _log.warning("http.ssl.trust.all.certs=true: anyone on the network path can read and change everything.")
        self._connections = Connections(config.host_rules)
        self._adapter = CheckedAdapter(self._connections, tls_context(config), most_connections)
        proxy = config.proxy
        self._proxies = {} if proxy is None else {"http": proxy.value, "https": proxy.value}
        self._authentication = authentication(config, self._send_plainly)
        self._patience = config.http_client_body_timeout_millis / 1000

    def send(self, request: Request, keep: int | None = None) -> Response:
        """Send a request and return the response with its body, or only the first ``keep`` bytes of it.

        Raises :class:`NoAnswerError` if a retry may help, otherwise an error that says what to correct.
        """
        stream = self.open(request)
        return self._read(stream) if keep is None else self._beginning(stream, keep)

    def open(self, request: Request) -> Stream:
        """Send a request and return the response before its body."""
        sent = self._authentication.headers()
        stream = self._follow(request, sent)
        if self._authentication.is_refreshed(stream.status, sent):
            stream.close()
            stream = self._follow(request, self._authentication.headers())
        return stream

    def hide(self, text: str) -> str:
        """Return the text with the credentials in it hidden."""
        return self._authentication.hide(text)

    def abort(self) -> None:
        """Abort every exchange under way; the client cannot be used any more."""
        self._connections.abort()

    def close(self) -> None:
        """Close the connections."""
        self._connections.abort()
        self._adapter.close()

    def _follow(self, request: Request, credentials: Mapping[str, str]) -> Stream:
        own = origin(request.url)
        url = request.url
        for _ in range(_MOST_HOPS + 1):
            stream = self._exchange(request, url, credentials if origin(url) == own else None)
            location = stream.headers.get("location")
            if stream.status not in _REDIRECTS or location is None or not _is_followed(request, stream.status):
                return stream
            stream.close()
            url = _next_hop(request, url, location, own)
        raise BrokenResponseError(f"{request.shown} redirects more than {_MOST_HOPS} times: correct the URL.")

    def _exchange(self, request: Request, url: str, credentials: Mapping[str, str] | None) -> Stream:
        """Make one hop, without ``credentials`` if it goes to another host."""
        headers = {"User-Agent": self._config.http_user_agent, "Accept-Encoding": "gzip, deflate"}
        if credentials is not None:
            headers |= credentials
            headers |= request.headers
            url = self._authentication.url(url)
        else:
            headers |= {key: value for key, value in request.headers.items() if key.lower() in _PUBLIC_HEADERS}
        return self._transmit(request.method, url, headers, request.body)

    def _send_plainly(self, request: Request) -> Response:
        headers = {"User-Agent": self._config.http_user_agent, **request.headers}
        return self._read(self._transmit(request.method, request.url, headers, request.body))

    def _transmit(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Stream:
        prepared = requests.PreparedRequest()
        with _told_errors(url):
            prepared.prepare_method(method)
            prepared.prepare_url(url, None)
            # UTF-8, where requests would fail with what is not Latin-1.
            encoded: Any = {name: value.encode() for name, value in headers.items()}
            prepared.headers = CaseInsensitiveDict(encoded)
            prepared.body = body
            if body is not None or method not in _SAFE:
                prepared.headers["Content-Length"] = str(len(body or b""))
            if self._proxies:
                _, host, port = origin(url)
                self._connections.check_target(host, port)
            response = self._adapter.send(
                prepared, stream=True, timeout=self._config.timeouts, verify=True, proxies=self._proxies
            )
        return Stream(response, url)

    def _read(self, stream: Stream) -> Response:
        content, most = bytearray(), self._config.http_response_max_bytes
        deadline = time.monotonic() + self._patience
        try:
            while part := stream.read():
                content += part
                if len(content) > most:
                    raise BrokenResponseError(
                        f"The answer of {shown_address(stream.url)} has more than {most} bytes: request less at a "
                        "time, or raise http.response.max.bytes."
                    )
                if time.monotonic() > deadline:
                    raise TimedOutError(
                        f"{shown_address(stream.url)} did not send its complete answer within {self._patience:g} s."
                    )
        except BaseException:
            stream.close()
            raise
        stream.finish()
        return Response(stream.status, stream.headers, bytes(content), stream.url)

    def _beginning(self, stream: Stream, keep: int) -> Response:
        """Read the beginning of a response, and a small rest as well, so that the connection can be reused."""
        content, read = bytearray(), 0
        try:
            while (part := stream.read()) and read <= keep + _PART:
                read += len(part)
                content += part[: keep - len(content)]
        except NoAnswerError:
            # The status is known, and with it what became of the request.
            part = b"..."
        if part:
            stream.close()
        else:
            stream.finish()
        return Response(stream.status, stream.headers, bytes(content), stream.url)


def _is_followed(request: Request, status: int) -> bool:
    """Whether to follow a redirect; never with another method, which would lose the body."""
    return request.method in _SAFE or status in _SAME_METHOD


def _next_hop(request: Request, url: str, location: str, own: tuple[str, str, int]) -> str:
    target = urljoin(url, location)
    try:
        place = origin(target)
        has_user = urlsplit(target).username is not None
    except ValueError:
        raise BrokenResponseError(f"{request.shown} redirects to an invalid HTTP URL: correct the URL.") from None
    shown = shown_address(target)
    if has_user:
        raise BrokenResponseError(f"{request.shown} redirects to {shown} with a user in the URL: correct the URL.")
    if own[0] == "https" and place[0] == "http":
        raise BrokenResponseError(f"{request.shown} redirects to {shown}, which is not encrypted: correct the URL.")
    if place != own and request.body is not None:
        raise BrokenResponseError(
            f"{request.shown} redirects to {shown}, but a body is not sent to another host: correct the URL."
        )
    return target


def _headers(response: requests.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


@contextmanager
def _told_errors(url: str) -> Iterator[None]:
    """Turn the library's errors, which show whole URLs, into errors without secrets.

    They are not chained, for the same reason.
    """
    place = shown_address(url)
    try:
        yield
    except HostDeniedError:
        raise
    except (requests.exceptions.InvalidURL, requests.exceptions.MissingSchema, UnicodeError, ValueError) as error:
        if isinstance(error, (requests.RequestException, UnicodeError)):
            raise BrokenResponseError(f"{place} is not a valid URL: correct it.") from None
        raise NoAnswerError(f"{place} does not answer: {type(error).__name__}.") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, AttributeError) as error:
        # AttributeError: another thread has closed the connection.
        if (reason := _distrust(error)) is not None:
            raise UntrustedError(
                f"{place} is not trusted, or does not trust the client: {reason}. Check the https.ssl keys, and that "
                "the host of the URL matches its certificate."
            ) from None
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError)):
            raise TimedOutError(f"{place} does not answer in time.") from None
        raise NoAnswerError(f"{place} does not answer: {_reason(error)}.") from None


def _distrust(error: BaseException) -> str | None:
    for part in _parts(error):
        if isinstance(part, ssl.SSLCertVerificationError):
            return part.verify_message or part.reason
        if isinstance(part, ssl.SSLError) and "ALERT" in (part.reason or "").upper():
            return part.reason
    return None


def _reason(error: BaseException) -> str:
    found = [part for part in _parts(error) if isinstance(part, OSError) and part.strerror]
    return (found[-1].strerror if found else None) or type(error).__name__


def _parts(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes."""
    waiting, seen = [error], set()
    while waiting:
        part = waiting.pop(0)
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        reason = getattr(part, "reason", None)
        inner = (part.__cause__, part.__context__, reason, *part.args)
        waiting += [each for each in inner if isinstance(each, BaseException)]
