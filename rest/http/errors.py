"""Maps errors to HTTP statuses, and answers them with Kafka Connect's error body."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from flask import Flask, Response, current_app, jsonify
from werkzeug.exceptions import HTTPException, MethodNotAllowed, UnsupportedMediaType

from connect.errors import AlreadyExistsError, ConfigError, ConnectError, NotFoundError
from worker.errors import (
    BadRequestError,
    ChangedMeanwhileError,
    ConflictError,
    ForbiddenError,
    NotAssignedError,
    NotLeaderError,
    RebalanceInProgressError,
    UnavailableError,
)

__all__ = ["error_answer", "register_errors", "status_of"]

_HIDE: Final = "sluice-hide"
_STATUSES: Final[tuple[tuple[type[ConnectError], int], ...]] = (
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (RebalanceInProgressError, 409),
    (NotLeaderError, 409),
    (NotAssignedError, 409),
    (UnavailableError, 503),
    (ChangedMeanwhileError, 412),
    (ConflictError, 409),
    (BadRequestError, 400),
    (ForbiddenError, 403),
    (ConfigError, 400),
    (ConnectError, 500),
)


def register_errors(app: Flask, hide: Callable[[str], str]) -> None:
    """Answer every error of the app with ``{"error_code": ..., "message": ...}``; ``hide`` redacts messages."""
    app.extensions[_HIDE] = hide
    app.register_error_handler(ConnectError, error_answer)
    app.register_error_handler(HTTPException, _http_error)


def error_answer(error: ConnectError) -> Response:
    """Return the answer to an error."""
    hide: Callable[[str], str] = current_app.extensions[_HIDE]
    answer = _answer(status_of(error), hide(str(error)))
    if isinstance(error, UnavailableError) and error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def status_of(error: ConnectError) -> int:
    """Return the HTTP status of an error."""
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def _http_error(error: HTTPException) -> Response:
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    remedy = f": {error.description}" if isinstance(error, UnsupportedMediaType) else ""
    answer = _answer(status, f"HTTP {status} {HTTPStatus(status).phrase}{remedy}")
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        answer.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return answer


def _answer(status: int, message: str) -> Response:
    body: dict[str, Any] = {"error_code": status, "message": message}
    answer = jsonify(body)
    answer.status_code = status
    return answer
