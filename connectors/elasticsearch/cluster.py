"""The requests to a cluster besides bulk ones: whether it answers, and indexes, data streams and mappings."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson

from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.http.client import HttpClient
from connect.kits.http.messages import NoAnswerError, Request, Response
from connect.kits.http.retries import Backoff, retry_after
from connectors.elasticsearch.cluster_config import Sign
from connectors.elasticsearch.resources import Resource

__all__ = ["JSON", "JSON_LINES", "Cluster", "is_passing", "refusal"]

JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}
JSON_LINES: Final = {"Content-Type": "application/x-ndjson", "Accept": "application/json"}

_EXCERPT_CHARACTERS: Final = 500
_NOT_FOUND: Final = 404
_BAD_REQUEST: Final = 400
_DENIED: Final = (401, 403)
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_BLOCKS: Final = (b'"cluster_block_exception"', b'"index_create_block_exception"')
"""Kinds of errors of a cluster, or an index, that is not to be written for now, such as for a full disk."""

_OF_ALL: Final = b'"validation_exception"'
"""The kind of error of a cluster that has as many shards as it may have."""

_log = logging.getLogger(__name__)


def is_passing(response: Response) -> bool:
    """Whether a request that was answered so may succeed later."""
    is_blocked = response.status in _DENIED and any(kind in response.body for kind in _BLOCKS)
    return is_blocked or response.status in _PASSING


def refusal(response: Response) -> str:
    """Return the words of an answer that refuses a request."""
    try:
        error = orjson.loads(response.body)["error"]
        text = error if isinstance(error, str) else f"{error.get('type')}: {error.get('reason')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        text = response.body[:_EXCERPT_CHARACTERS].decode("utf-8", "replace")
    return f"HTTP status {response.status}: {text[:_EXCERPT_CHARACTERS]}"


@dataclass(slots=True)
class Cluster:
    """The nodes of a cluster, asked in turn. Used by one thread."""

    client: HttpClient
    nodes: tuple[str, ...]
    sign: Sign
    backoff: Backoff
    max_retries: int
    node: int = 0
    failures: int = 0

    def turn(self) -> None:
        """Ask the next node from now on."""
        self.node = (self.node + 1) % len(self.nodes)

    def bulk_request(self, body: bytes, headers: Mapping[str, str]) -> Request:
        """Return a bulk request, without a signature. Of the answer only what is needed is asked for."""
        path = "/_bulk?filter_path=errors,items.*.status,items.*.error"
        return Request("POST", self.nodes[self.node] + path, {**JSON_LINES, **headers}, body)

    def prepare(self, resource: Resource, mapping: Mapping[str, Any] | None, template: str | None) -> None:
        """Make a resource that is missing, and send its mapping if it has none. ``template`` is for data streams.

        Raises :class:`~connect.errors.DataError` if the name or the mapping cannot be, as the record has them.
        """
        name = quote(resource.name, safe="")
        if resource.is_ours:
            if resource.is_data_stream:
                self._make_stream(name, resource.name, template)
            elif self._ask("HEAD", f"/{name}").status == _NOT_FOUND:
                self._make(f"/{name}", f"make the index {resource.name}", is_of_record=True)
        if mapping:
            found = self._done(self._ask("GET", f"/{name}/_mapping"), f"read the mapping of {resource.name}")
            if not any(each.get("mappings") for each in orjson.loads(found.body).values()):
                answer = self._ask("PUT", f"/{name}/_mapping", mapping)
                self._done(answer, f"take the mapping of {resource.name}", is_of_record=True)

    def _make_stream(self, name: str, shown: str, template: str | None) -> None:
        if self._ask("GET", f"/_data_stream/{name}").status != _NOT_FOUND:
            return
        if template is not None:
            path = f"/_index_template/{quote(template, safe='')}"
            if self._ask("HEAD", path).status == _NOT_FOUND:
                body = {"index_patterns": [shown], "data_stream": {}, "priority": 200}
                self._done(self._ask("PUT", path, body), f"make the index template {template}")
        self._make(f"/_data_stream/{name}", f"make the data stream {shown}, for which an index template must match")

    def _make(self, path: str, what: str, *, is_of_record: bool = False) -> None:
        answer = self._ask("PUT", path)
        if b"resource_already_exists_exception" not in answer.body:
            self._done(answer, what, is_of_record=is_of_record)
            _log.info("Done: %s.", what)

    def _done(self, answer: Response, what: str, *, is_of_record: bool = False) -> Response:
        if 200 <= answer.status < 300:
            return answer
        text = f"The cluster refuses to {what}: {refusal(answer).rstrip('.')}."
        if is_of_record and answer.status == _BAD_REQUEST and _OF_ALL not in answer.body:
            raise DataError(text)
        remedy = "Grant the right" if answer.status in _DENIED else "Correct that"
        raise ConnectError(f"{text} {remedy}, or make it by hand.")

    def _ask(self, method: str, path: str, body: object = None) -> Response:
        """Send a request. Raises ``RetriableError`` if it may succeed later, and in the end ``ConnectError``."""
        data = None if body is None else orjson.dumps(body)
        asked: float | None = None
        try:
            request = Request(method, self.nodes[self.node] + path, JSON if data is not None else {}, data)
            answer = self.client.send(self.sign(request))
        except NoAnswerError as error:
            reason = str(error)
            self.turn()
        else:
            if not is_passing(answer):
                self.failures = 0
                return answer
            reason, asked = refusal(answer), retry_after(answer.headers, time.time())
        self.failures += 1
        if self.failures > self.max_retries:
            raise ConnectError(f"{reason} It was tried {self.failures} times (max.retries).")
        wait = self.backoff.seconds(self.failures) if asked is None else asked
        raise RetriableError(f"{reason.rstrip('.')}; retrying in {wait:.1f} s.", retry_after=wait)
