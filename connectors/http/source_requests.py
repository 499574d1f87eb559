"""The requests of the source, built from templates and a place in the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from connect.kits.http.messages import Request
from connectors.http.paging import Paging
from connectors.http.places import Place
from connectors.http.source_config import HttpSourceConfig
from connectors.http.templates import MissingValueError

__all__ = ["SourceRequests"]


class SourceRequests:
    """Builds requests."""

    def __init__(self, config: HttpSourceConfig) -> None:
        self._method = config.http_request_method
        self._url = config.url_template()
        self._headers = config.header_templates()
        self._parameters = config.parameter_templates()
        self._body = config.body_template()
        self._accept = "text/event-stream" if config.http_events else "application/json"
        if config.http_response_type == "text" and not config.http_events:
            self._accept = "*/*"
        self._has_type = config.content_type is not None
        self.child = config.child_template()

    def page(self, place: Place, paging: Paging) -> Request:
        """Return the request for the page at a place."""
        names = {"offset": place.fields, "page": paging.names(place.page)}
        url = paging.link(place.page) or self._with_parameters(self._url.render(names), names)
        body = None if self._body is None else self._body.render(names).encode()
        return Request(self._method, url, self._rendered_headers(names, has_body=body is not None), body)

    def of_child(self, parent: Any, place: Place) -> Request:
        """Return the request for the child of a record."""
        assert self.child is not None
        names = {"offset": place.fields, "page": {}, "parent": parent}
        return Request("GET", self.child.render(names), self._rendered_headers(names, has_body=False))

    def events(self, last_id: str, fields: Mapping[str, Any]) -> Request:
        """Return the request for an event stream after the event with that id."""
        names = {"offset": fields, "page": {}}
        headers = self._rendered_headers(names, has_body=False) | {"Cache-Control": "no-store"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        return Request(self._method, self._with_parameters(self._url.render(names), names), headers)

    def _rendered_headers(self, names: Mapping[str, Any], *, has_body: bool) -> dict[str, str]:
        headers = {"Accept": self._accept}
        if has_body and not self._has_type:
            headers["Content-Type"] = "application/json"
        return headers | {name: template.render(names) for name, template in self._headers}

    def _with_parameters(self, url: str, names: Mapping[str, Any]) -> str:
        pairs = []
        for name, template in self._parameters:
            try:
                pairs.append(f"{quote(name, safe='[]')}={quote(template.render(names), safe='')}")
            except MissingValueError:
                # There is no value yet, so the parameter is left out.
                continue
        return url + ("&" if "?" in url else "?") + "&".join(pairs) if pairs else url
