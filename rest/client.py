"""A client of the REST API, for the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import requests

from connect.errors import ConnectError
from rest.http.paths import escaped

__all__ = ["RestClient", "RestError"]

# A worker gives up after 90 s and then says what it waited for.
_TIMEOUT: Final = 100.0


class RestError(ConnectError):
    """The worker refused; ``status`` is the HTTP status, ``None`` if there was no answer."""

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class RestClient:
    """Asks one worker about connectors. ``auth`` is a user and password; without it those in ``~/.netrc`` are used.

    Proxies and certificate authorities come from the environment (``HTTPS_PROXY``, ``REQUESTS_CA_BUNDLE``). Every
    method raises :class:`RestError`.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None = None) -> None:
        self._url = url.rstrip("/")
        self._session = requests.Session()
        if auth is not None:
            self._session.auth = auth

    def get(self, connector: str, path: str, **parameters: str | int) -> Any:
        """Send a GET below a connector's path, and return the answer."""
        return self._ask("GET", connector, path, parameters, None)

    def post(self, connector: str, path: str, body: Mapping[str, Any], **parameters: str | int) -> Any:
        """Send a POST below a connector's path, and return the answer."""
        return self._ask("POST", connector, path, parameters, body)

    def patch(self, connector: str, path: str, body: Mapping[str, Any]) -> Any:
        """Send a PATCH below a connector's path, and return the answer."""
        return self._ask("PATCH", connector, path, {}, body)

    def stop_command(self, connector: str) -> str:
        """Return the shell command that stops a connector."""
        return f"curl -X PUT {self._url}/connectors/{escaped(connector)}/stop"

    def _ask(
        self,
        method: str,
        connector: str,
        path: str,
        parameters: Mapping[str, str | int],
        body: Mapping[str, Any] | None,
    ) -> Any:
        url = f"{self._url}/connectors/{escaped(connector)}/{path}"
        try:
            answer = self._session.request(method, url, params=dict(parameters), json=body, timeout=_TIMEOUT)
        except requests.RequestException as error:
            raise RestError(
                f"No worker answers at {self._url}: {error}. Give the address of its REST API with --url, "
                "for example http://localhost:8083.",
                None,
            ) from error
        document = _document(answer, self._url)
        if answer.ok:
            return document
        message = document.get("message") if isinstance(document, dict) else None
        raise RestError(str(message or f"{self._url} answered {answer.status_code}"), answer.status_code)


def _document(answer: requests.Response, url: str) -> Any:
    try:
        return answer.json()
    except requests.JSONDecodeError as error:
        raise RestError(
            f"What answers at {url} is not the REST API of a worker: status {answer.status_code}", answer.status_code
        ) from error
