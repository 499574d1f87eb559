"""The HTTP client: requests with credentials, checked redirects, bounded bodies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from connect.kits.http.content_encoding import ACCEPTED_ENCODINGS
from connect.kits.http.credentials import Credentials
from connect.kits.http.messages import (
    BrokenResponseError,
    NoAnswerError,
    Request,
    Response,
    TimedOutError,
    TooLargeError,
    UnreadableBodyError,
    origin,
    shown_address,
)
from connect.kits.http.settings import ClientSettings

if TYPE_CHECKING:
    from connect.kits.http.transport import Stream

__all__ = ["HttpClient"]

_PART_BYTES: Final = 1 << 16
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD: Final = frozenset({307, 308})
_SAFE: Final = frozenset({"GET", "HEAD"})
_MOST_HOPS: Final = 5
_PUBLIC_HEADERS: Final = frozenset({"accept", "user-agent", "accept-encoding", "last-event-id"})
"""Headers that another host may be sent, too: they have no credentials."""


class HttpClient:
    """Sends requests. Thread-safe; :meth:`abort` ends all waiting."""

    def __init__(self, settings: ClientSettings, credentials: Credentials | None = None) -> None:
        # Imported here, so that only processes that send requests load the library.
        from connect.kits.http.transport import Transport  # noqa: PLC0415

        self._transport = Transport(settings)
        self._settings = settings
        self._credentials = credentials or Credentials()

    def send(self, request: Request, keep: int | None = None) -> Response:
        """Send a request and return the response with its body, or only the first ``keep`` bytes of it.

        Raises :class:`NoAnswerError` if a retry may help, otherwise an error that says what to correct.
        """
        stream = self.open(request)
        return self._read(stream) if keep is None else self._beginning(stream, keep)

    def open(self, request: Request) -> Stream:
        """Send a request and return the response before its body."""
        sent = self._credentials.headers(self._send_plainly)
        stream = self._follow(request, sent)
        if self._credentials.is_refreshed(stream.status, sent):
            stream.close()
            stream = self._follow(request, self._credentials.headers(self._send_plainly))
        return stream

    def hide(self, text: str) -> str:
        """Return the text with the credentials in it hidden."""
        return self._credentials.hide(text)

    def abort(self) -> None:
        """Abort every exchange under way; the client cannot be used any more."""
        self._transport.abort()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def _follow(self, request: Request, credentials: Mapping[str, str]) -> Stream:
        own = origin(request.url)
        url = request.url
        for _ in range(_MOST_HOPS + 1):
            stream = self._transmit(self._hop(request, url, credentials if origin(url) == own else None))
            location = stream.headers.get("location")
            if location is None or not self._is_followed(request, stream.status):
                return stream
            stream.close()
            url = _next_hop(request, url, location, own)
        raise BrokenResponseError(f"{request.shown} redirects more than {_MOST_HOPS} times: correct the URL.")

    def _is_followed(self, request: Request, status: int) -> bool:
        """Return whether to follow a redirect; never with another method, which would lose the body."""
        is_redirect = self._settings.follows_redirects and status in _REDIRECTS
        return is_redirect and (request.method in _SAFE or status in _SAME_METHOD)

    def _hop(self, request: Request, url: str, credentials: Mapping[str, str] | None) -> Request:
        """Return the request for one hop, without ``credentials`` if it goes to another host."""
        if credentials is not None:
            return replace(request, url=self._credentials.url(url), headers={**credentials, **request.headers})
        public = {key: value for key, value in request.headers.items() if key.lower() in _PUBLIC_HEADERS}
        return replace(request, url=url, headers=public)

    def _transmit(self, request: Request) -> Stream:
        headers = {"User-Agent": self._settings.user_agent, "Accept-Encoding": ACCEPTED_ENCODINGS, **request.headers}
        return self._transport.send(replace(request, headers=headers))

    def _send_plainly(self, request: Request) -> Response:
        return self._read(self._transmit(request))

    def _read(self, stream: Stream) -> Response:
        content, most, patience = bytearray(), self._settings.max_bytes, self._settings.body_seconds
        deadline, place = time.monotonic() + patience, shown_address(stream.url)
        try:
            while part := stream.read():
                content += part
                if len(content) > most:
                    remedy = self._settings.remedies.too_large
                    reason = f"its answer is larger than {most} bytes"
                    raise TooLargeError(f"The answer of {place} has more than {most} bytes: {remedy}", reason)
                if time.monotonic() > deadline:
                    raise TimedOutError(
                        f"{place} did not send its complete answer within {patience:g} s.", "no answer in time"
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
            while (part := stream.read()) and read <= keep + _PART_BYTES:
                read += len(part)
                content += part[: keep - len(content)]
        except (NoAnswerError, UnreadableBodyError):
            # The status is known, and so is the outcome of the request.
            part = b"..."
        if part:
            stream.close()
        else:
            stream.finish()
        return Response(stream.status, stream.headers, bytes(content), stream.url)


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
