"""A client of the REST API for the command line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final

import requests

from connect.errors import ConnectError, os_reason
from rest.http.paths import escaped

__all__ = ["ADDRESS", "RestClient", "RestError"]

# A worker gives up after 90 s and then says what it was waiting for.
_TIMEOUT_SECONDS: Final = 100.0
ADDRESS: Final = "Give the address of a worker's REST API with --url or SLUICE_URL, for example http://localhost:8083."
_NO_TLS: Final = "wrong version number"
"""What OpenSSL says of an answer that is not TLS's, such as that of a server of plain HTTP."""
_OTHER_NAME: Final = "doesn't match connector name in the URL"
_KEEPS_ITS_NAME: Final = (
    "Leave the key name out: a connector keeps its name. To rename it, create one with the new name, give it the "
    "offsets of this one with `sluice offsets export` and `sluice offsets import`, and delete this one."
)
_OTHER_DOOR: Final = (
    "A proxy in front of the worker lets only some methods through, or the worker is older than this command: give the "
    "address of the worker itself with --url, and compare the versions, with curl and with `sluice --version`."
)
_EVERY_WORKER_HAS: Final = ("/", "/connectors", "/connector-plugins")


class RestError(ConnectError):
    """An error answered by the worker, with the ``document`` of the answer.

    ``status`` is the HTTP status, or ``None`` if there was no answer.
    """

    def __init__(self, message: str, status: int | None, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.document = document


class RestClient:
    """Sends requests to one worker, with an API ``token``, with ``auth`` (user and password), or with ``~/.netrc``.

    Proxies and certificate authorities come from the environment (``HTTPS_PROXY``, ``REQUESTS_CA_BUNDLE``). Each method
    takes an escaped path, returns the parsed answer (``None`` if it is empty), and raises :class:`RestError`.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None = None, token: str | None = None) -> None:
        self.url: Final = url.rstrip("/")
        self._session = requests.Session()
        if token is not None:
            self._session.auth = _Bearer(token)
        elif auth is not None:
            self._session.auth = auth

    @staticmethod
    def connector_path(name: str, *segments: str) -> str:
        """Return the path of a connector or of a resource below it: ``connector_path("a/b", "status")``."""
        return "/".join(("/connectors", escaped(name), *segments))

    def get(self, path: str, **parameters: str | int) -> Any:
        """Send a GET request."""
        return self._ask("GET", path, parameters)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **parameters: str | int) -> Any:
        """Send a POST request."""
        return self._ask("POST", path, parameters, body)

    def put(self, path: str, body: Mapping[str, Any] | None = None, **parameters: str | int) -> Any:
        """Send a PUT request."""
        return self._ask("PUT", path, parameters, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a PATCH request."""
        return self._ask("PATCH", path, {}, body)

    def delete(self, path: str) -> Any:
        """Send a DELETE request."""
        return self._ask("DELETE", path, {})

    def troubles(self) -> list[str]:
        """Return what keeps the worker from its work."""
        try:
            health = self.get("/health")
        except RestError as error:
            if error.document is None:
                raise
            health = error.document
        return [str(trouble["message"]) for trouble in health.get("troubles", [])]

    def clock_difference(self) -> float | None:
        """Return by how many seconds the clock of the worker's machine is behind this one's; ``None`` if unknown."""
        try:
            date = self._session.head(f"{self.url}/health/live", timeout=_TIMEOUT_SECONDS).headers.get("Date")
        except requests.RequestException as error:
            raise RestError(f"No worker answers at {self.url}: {os_reason(error)}", None) from error
        return None if date is None else time.time() - parsedate_to_datetime(date).timestamp()

    def _ask(
        self, method: str, path: str, parameters: Mapping[str, str | int], body: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            answer = self._session.request(
                method, f"{self.url}{path}", params=dict(parameters), json=body, timeout=_TIMEOUT_SECONDS
            )
        except requests.RequestException as error:
            if _breaks_off(error):
                raise RestError(
                    self._no_worker("it does not speak HTTP; if it speaks TLS, use https://"), None
                ) from error
            if _NO_TLS in str(error).lower():
                raise RestError(self._no_worker("it does not speak TLS; use http://"), None) from error
            raise RestError(
                f"No worker answers at {self.url}: {os_reason(error)}. Is one running? {ADDRESS}",
                None,
            ) from error
        if answer.ok and not answer.content:
            return None
        if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            raise RestError(
                f"What answers at {self.url} does not take this request (405, the method is not allowed). "
                f"{_OTHER_DOOR}",
                answer.status_code,
            )
        document = self._document(answer)
        if answer.ok:
            return document
        if answer.status_code == HTTPStatus.NOT_FOUND and path.partition("?")[0] in _EVERY_WORKER_HAS:
            raise RestError(self._no_worker(f"it has no {path.partition('?')[0]}"), answer.status_code)
        fields = document if isinstance(document, dict) else {}
        message = str(fields.get("message") or f"{self.url} answered {answer.status_code}")
        remedy = f". {_KEEPS_ITS_NAME}" if _OTHER_NAME in message else ""
        raise RestError(f"{message}{remedy}", answer.status_code, fields)

    def _document(self, answer: requests.Response) -> Any:
        try:
            return answer.json()
        except requests.JSONDecodeError as error:
            message = self._no_worker(f"its answer with status {answer.status_code} is not JSON")
            if answer.status_code == HTTPStatus.UNAUTHORIZED:
                message = (
                    f"What answers at {self.url} is not the REST API of a worker: status 401. Set SLUICE_USER and "
                    "SLUICE_PASSWORD, or SLUICE_TOKEN, if it asks for a user."
                )
            raise RestError(message, answer.status_code) from error

    def _no_worker(self, why: str) -> str:
        return f"What answers at {self.url} is not a Sluice or Kafka Connect worker: {why}. {ADDRESS}"


def _breaks_off(error: BaseException) -> bool:
    """Return whether something took the connection, and closed it or sent what is not HTTP."""
    parts = [error, *(part for part in error.args if isinstance(part, BaseException))]
    deeper = [part for each in parts[1:] for part in each.args if isinstance(part, BaseException)]
    return any(isinstance(part, HTTPException | ConnectionResetError) for part in (*parts, *deeper))


class _Bearer(requests.auth.AuthBase):
    """Sends a token; without this class requests would prefer ``~/.netrc``."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, prepared: requests.PreparedRequest) -> requests.PreparedRequest:
        prepared.headers["Authorization"] = f"Bearer {self._token}"
        return prepared
