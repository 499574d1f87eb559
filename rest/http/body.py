"""Reading JSON bodies and parameters of requests with precise errors, and writing JSON answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson
from flask import Response, request
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import NotAcceptable, UnsupportedMediaType

from worker.errors import BadRequestError

__all__ = [
    "JsonAnswers",
    "bare_config",
    "check_accept",
    "check_content_type",
    "check_members",
    "config_of",
    "flag",
    "json_body",
    "json_object",
]

_JSON: Final = "application/json"
_ACCEPTABLE: Final = frozenset({_JSON, "application/*", "*/*", "*"})
"""The last is what ``java.net.HttpURLConnection`` sends."""


def check_accept() -> None:
    """Refuse, with 406, a client that does not accept JSON; parameters of its media types are ignored."""
    accepted = request.headers.get("Accept", "").split(",")
    types = {one.partition(";")[0].strip().lower() for one in accepted} - {""}
    if types and not types & _ACCEPTABLE:
        raise NotAcceptable


def check_content_type() -> None:
    """Refuse, with 415, a body whose content type is not JSON."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return
    if (request.content_type and request.mimetype != _JSON) or (request.content_length and not request.content_type):
        raise UnsupportedMediaType(f"Send the header Content-Type: {_JSON}, and JSON as the body.")


def json_body(*, numbers_as_text: bool = False) -> Any:
    """Return the parsed body of the request; ``numbers_as_text`` keeps the original spelling of numbers."""
    data = request.get_data()
    if not data.strip():
        raise BadRequestError("The request has no body. Send a JSON document.")
    as_text = {"parse_float": str, "parse_int": str} if numbers_as_text else {}
    try:
        text = data.decode(json.detect_encoding(data))
        document = json.loads(text, parse_constant=_no_constant, **as_text)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The body of the request is not JSON: {error}") from error
    if "\\u" in text:
        _check_characters(document)
    return document


def json_object(known: frozenset[str] | None = None, *, numbers_as_text: bool = False) -> dict[str, Any]:
    """Return the body, which must be an object without members other than those in ``known``."""
    body = json_body(numbers_as_text=numbers_as_text)
    if not isinstance(body, dict):
        raise BadRequestError(f"The body of the request must be a JSON object, not {_kind(body)}.")
    if known is not None:
        check_members(body, known)
    return body


def check_members(body: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse an object with members other than those in ``known``."""
    if unknown := body.keys() - known:
        raise BadRequestError(f'Unrecognized field "{min(unknown)}". The known fields are {", ".join(sorted(known))}.')


def config_of(document: object) -> dict[str, str | None]:
    """Return a configuration: a string or null for each key; numbers and booleans keep their original spelling."""
    if not isinstance(document, Mapping):
        raise BadRequestError(f"A configuration must be a JSON object, not {_kind(document)}.")
    return {key: _text(key, value) for key, value in document.items()}


def bare_config() -> dict[str, str | None]:
    """Return the body of a request that takes the configuration itself, not an object with a ``config`` member."""
    body = json_object(numbers_as_text=True)
    if isinstance(body.get("config"), dict):
        raise BadRequestError(
            "The body of this request is the configuration itself: send only the object under config, without the "
            "enclosing name and config. That form is for POST /connectors."
        )
    return config_of(body)


def flag(name: str) -> bool:
    """Return a boolean parameter; any value other than ``true`` is false, as in Kafka Connect."""
    return request.args.get(name, "").lower() == "true"


class JsonAnswers(DefaultJSONProvider):
    """Writes answers with orjson, in UTF-8 and compact as Kafka Connect does.

    With many connectors, the standard library's encoder took half of the time of an answer.
    """

    def response(self, *args: Any, **members: Any) -> Response:
        """Return a value as a JSON answer."""
        return Response(_encoded(self._prepare_response_obj(args, members)), mimetype=self.mimetype)


def _text(key: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    raise BadRequestError(f"The value of {key} must be a string, a number, a boolean or null, not {_kind(value)}.")


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _check_characters(document: object) -> None:
    r"""Refuse a lone surrogate such as ``\ud800``, which is not a character and cannot be encoded in UTF-8."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise BadRequestError(
            f"The body of the request contains the lone surrogate {half}, which is not a character."
        ) from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # orjson takes neither integers of more than 64 bits, which offsets may be, nor lone surrogates.
        return json.dumps(value, separators=(",", ":")).encode()
