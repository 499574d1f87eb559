"""Headers: those configured by the operator, CORS for web pages of other origins, and revisions as entity tags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from flask import Flask, Response, request

from worker.config.response_headers import HeaderRule, parse_header_rules
from worker.errors import BadRequestError, ForbiddenError

__all__ = ["AnswerHeaders", "expected_revision", "revision_tag"]

_DEFAULT_METHODS: Final = "GET,POST,HEAD"
_EVERY_ORIGIN: Final = "*"
_HARMLESS: Final = ("GET", "HEAD", "OPTIONS")
_OF_THE_SAME_ORIGIN: Final = ("same-origin", "none")


@dataclass(frozen=True, slots=True)
class AnswerHeaders:
    """Adds CORS headers and those of ``response.http.headers.config`` to every answer of an app."""

    origins: tuple[str, ...] = ()
    methods: str = _DEFAULT_METHODS
    rules: tuple[HeaderRule, ...] = ()

    @classmethod
    def of(cls, origins: str, methods: str, rules: str) -> AnswerHeaders:
        """Parse the values of the three worker configuration keys."""
        listed = tuple(origin.strip() for origin in origins.split(",") if origin.strip())
        allowed = ",".join(method.strip() for method in methods.split(",") if method.strip())
        return cls(listed, allowed or _DEFAULT_METHODS, parse_header_rules(rules))

    def put_on(self, app: Flask) -> None:
        """Add the headers to every answer of ``app``, and refuse changes requested by pages of other origins."""
        app.before_request(self._refuse_other_origins)
        app.after_request(self._answered)

    def _refuse_other_origins(self) -> None:
        """Refuse changes requested by pages of other origins; some, such as a restart, get no preflight."""
        origin = request.headers.get("Origin")
        if request.method in _HARMLESS or _is_of_same_origin(origin) or origin in self.origins:
            return
        if _EVERY_ORIGIN in self.origins and not request.cookies:
            # With * a page of any origin may make changes, but never with a session cookie.
            return
        raise ForbiddenError(
            f"A web page of {origin or 'another site'} may not make changes here. To allow it, add its origin to "
            "access.control.allow.origin in the worker's configuration."
        )

    def _allows(self, origin: str | None) -> bool:
        return _EVERY_ORIGIN in self.origins or origin in self.origins

    def _answered(self, response: Response) -> Response:
        self._allow_origin(response)
        for rule in self.rules:
            if rule.replaces:
                response.headers[rule.name] = rule.value
            else:
                response.headers.add(rule.name, rule.value)
        return response

    def _allow_origin(self, response: Response) -> None:
        if not self.origins:
            return
        response.headers.add("Vary", "Origin")
        origin = request.headers.get("Origin")
        if origin is None or not self._allows(origin):
            return
        is_listed = origin in self.origins
        response.headers["Access-Control-Allow-Origin"] = origin
        if is_listed:
            response.headers["Access-Control-Allow-Credentials"] = "true"
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            response.headers["Access-Control-Allow-Methods"] = self.methods
            if wanted := request.headers.get("Access-Control-Request-Headers"):
                response.headers["Access-Control-Allow-Headers"] = wanted if is_listed else "Content-Type"


def _is_of_same_origin(origin: str | None) -> bool:
    """Return whether a request comes from this server's own origin, or not from a web page at all.

    Schemes are not compared, since a proxy in front of the worker may terminate TLS.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in _OF_THE_SAME_ORIGIN
    return origin is None or urlsplit(origin).netloc == request.host


_MOST_DIGITS: Final = 20
_ANY: Final = "*"


def revision_tag(revision: int) -> str:
    """Return the ``ETag`` of a revision."""
    return f'"{revision}"'


def expected_revision() -> int | None:
    """Return the revision required by ``If-Match``; ``None`` if the request is unconditional."""
    tag = request.headers.get("If-Match", _ANY).strip()
    if tag == _ANY:
        return None
    number = tag.removeprefix("W/").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise BadRequestError(f"Invalid If-Match {tag!r}: use the ETag of GET /connectors/NAME/config.")
    return int(number)
