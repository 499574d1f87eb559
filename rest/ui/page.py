"""What all pages share: addresses, static files, security headers and error pages."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from flask import Blueprint, Response, redirect, render_template, request
from markupsafe import Markup
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.wrappers import Response as AnyResponse

from connect.errors import ConnectError
from rest.access.caller import caller
from rest.access.sign_in import session_secret
from rest.http.errors import status_of
from rest.http.paths import escaped
from rest.ui import formats
from worker.herder.cluster.standing import Trouble
from worker.security.permissions import Right
from worker.traces import cause_of

__all__ = ["NAME", "Asset", "Assets", "Site", "page_blueprint", "shown"]

NAME: Final = "ui"
"""The name of the blueprint of all pages, by which the app knows their requests."""

_HTML: Final = "text/html"
_JSON: Final = "application/json"
_PARTS: Final = re.compile(r"(?<=[._])(?=\w)|(?<=[a-z])(?=[A-Z])", re.ASCII)
_FOREVER: Final = "public, max-age=31536000, immutable"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A file."""

    content: bytes
    content_type: str


class Assets:
    """The files of the web page, read once. ``version`` is a digest of all of them."""

    def __init__(self) -> None:
        files = sorted(file for file in _FOLDER.iterdir() if file.suffix in _TYPES)
        self._assets = {file.name: Asset(file.read_bytes(), _TYPES[file.suffix]) for file in files}
        digest = hashlib.sha256()
        for name, asset in self._assets.items():
            digest.update(name.encode() + b"\0" + asset.content + b"\0")
        self.version: Final = digest.hexdigest()[:_DIGITS]

    def get(self, name: str) -> Asset | None:
        """Return the file of this name, if there is one."""
        return self._assets.get(name)


@dataclass(frozen=True, slots=True)
class Site:
    """The worker whose pages these are. ``base`` is the path under which a proxy serves it, without a trailing
    slash.
    """

    version: str
    cluster_id: str
    worker_id: str
    base: str = ""
    with_admin: bool = True

    def url(self, *segments: str) -> str:
        """Return the address of a page, with each segment escaped."""
        return "/".join((f"{self.base}/ui", *map(escaped, segments)))

    def api(self, *segments: str) -> str:
        """Return the address of a REST resource, with each segment escaped."""
        return "/".join((self.base, *map(escaped, segments)))


def page_blueprint(site: Site, hide: Callable[[str], str], troubles: Callable[[], list[Trouble]] = list) -> Blueprint:
    """Create the blueprint of ``/ui`` with static files and error pages; ``hide`` removes secrets from errors.

    ``troubles``, which keep the worker from its work, are shown on every page.
    """
    blueprint = Blueprint(NAME, __name__, url_prefix="/ui", template_folder="templates")
    assets = Assets()

    @blueprint.get("/static/<version>/<file>")
    def asset(version: str, file: str) -> Response:
        found = assets.get(file)
        if found is None:
            raise NotFound
        response = Response(found.content, content_type=found.content_type)
        response.headers["Cache-Control"] = _FOREVER if version == assets.version else "no-cache"
        return response

    @blueprint.get("/<path:_rest>")
    def nothing(_rest: str) -> Response:
        raise NotFound

    @blueprint.before_app_request
    def to_the_page() -> AnyResponse | None:
        """Redirect browsers from ``/`` to the page; programs that accept JSON or anything get the version instead."""
        accepted = request.accept_mimetypes
        if request.path == "/" and request.method == "GET" and accepted[_HTML] > accepted[_JSON]:
            return redirect(site.url(), HTTPStatus.SEE_OTHER)
        return None

    @blueprint.after_request
    def protected(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers[name] = value
        if "Cache-Control" not in response.headers:
            response.headers["Cache-Control"] = "no-store"
        return response

    @blueprint.get("/sign-in")
    def sign_in() -> Response:
        return shown("sign-in.html", failed=request.args.get("failed"), next=request.args.get("next", ""))

    @blueprint.context_processor
    def known() -> dict[str, Any]:
        return {
            "lacks": _lacks,
            "troubles": [hide(trouble.message) for trouble in troubles()],
            "principal": caller().principal,
            "has_session": session_secret(request) is not None,
            "site": site,
            "static": f"{site.base}/ui/static/{assets.version}",
            "grouped": formats.grouped,
            "amount": formats.amount,
            "size": formats.size,
            "duration": formats.duration,
            "measured": formats.measured,
            "cause_of": cause_of,
            "moment": formats.moment,
        }

    @blueprint.app_template_filter("tojson_text")
    def as_json(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, indent=indent, ensure_ascii=False)

    @blueprint.app_template_filter("breakable")
    def as_breakable(name: str) -> Markup:
        """Allow line breaks between the parts of a long name, but not within a part."""
        return Markup("<wbr>").join(_PARTS.split(name))

    @blueprint.errorhandler(ConnectError)
    def failed(error: ConnectError) -> tuple[str, int]:
        status = status_of(error)
        named = (request.view_args or {}).get("name") if status == HTTPStatus.NOT_FOUND else None
        return render_template("error.html", status=status, message=hide(str(error)), connector=named), status

    @blueprint.errorhandler(HTTPException)
    def refused(error: HTTPException) -> tuple[str, int]:
        status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
        message = "There is no such page." if status == HTTPStatus.NOT_FOUND else HTTPStatus(status).phrase
        return render_template("error.html", status=status, message=message), status

    return blueprint


def _lacks(right: str, connector: str | None = None) -> str:
    """Return the reason why the caller may not do something; empty if it may."""
    return "" if caller().may(Right(right), connector) else f"You lack the right {right}"


def shown(template: str, **members: Any) -> Response:
    """Render a page, or answer 304 if the browser already has exactly this page."""
    text = render_template(template, **members).encode()
    tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == tag:
        response = Response(status=HTTPStatus.NOT_MODIFIED)
    else:
        response = Response(text, content_type="text/html; charset=utf-8")
    response.headers["ETag"] = tag
    return response
