"""How errors become answers: one table of statuses, and Kafka Connect's body."""

from __future__ import annotations

from typing import Any, Final

from flask import Flask, Response, jsonify
from werkzeug.exceptions import HTTPException

from connect.errors import AlreadyExistsError, ConfigError, ConnectError, NotFoundError
from worker.errors import NotLeaderError, RebalanceInProgressError
from worker.herder.herder import InvalidConnectorError

__all__ = ["register_errors"]

_STATUSES: Final[tuple[tuple[type[ConnectError], int], ...]] = (
    (NotFoundError, 404),
    (AlreadyExistsError, 409),
    (RebalanceInProgressError, 409),
    (NotLeaderError, 409),
    (InvalidConnectorError, 400),
    (ConfigError, 400),
    (ConnectError, 500),
)


def register_errors(app: Flask) -> None:
    """Have every error of the app answered as ``{"error_code": ..., "message": ...}``."""
    app.register_error_handler(ConnectError, _connect_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(TimeoutError, _timed_out)


def _connect_error(error: ConnectError) -> tuple[Response, int]:
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    return _answer(status, str(error))


def _http_error(error: HTTPException) -> tuple[Response, int] | HTTPException:
    if error.code is None:
        return error
    return _answer(error.code, f"HTTP {error.code} {error.name}")


def _timed_out(_error: TimeoutError) -> tuple[Response, int]:
    return _answer(500, "Request timed out. The worker is busy; ask again in a moment.")


def _answer(status: int, message: str) -> tuple[Response, int]:
    body: dict[str, Any] = {"error_code": status, "message": message}
    return jsonify(body), status
