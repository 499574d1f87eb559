"""The headers beside the answers: those an operator configures, and those that let web pages of other origins ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flask import Flask, Response, request

from worker.response_headers import HeaderRule, parse_header_rules

__all__ = ["AnswerHeaders"]

_DEFAULT_METHODS: Final = "GET,POST,HEAD"


@dataclass(frozen=True, slots=True)
class AnswerHeaders:
    """Puts headers on every answer of an app (CORS and ``response.http.headers.config``)."""

    origins: tuple[str, ...] = ()
    methods: str = _DEFAULT_METHODS
    rules: tuple[HeaderRule, ...] = ()

    @classmethod
    def of(cls, origins: str, methods: str, rules: str) -> AnswerHeaders:
        """What the three keys of the worker's configuration say."""
        listed = tuple(origin.strip() for origin in origins.split(",") if origin.strip())
        allowed = ",".join(method.strip() for method in methods.split(",") if method.strip())
        return cls(listed, allowed or _DEFAULT_METHODS, parse_header_rules(rules))

    def put_on(self, app: Flask) -> None:
        """Put them on every answer of ``app`` from now on."""
        app.after_request(self._answered)

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
        if origin is None or not ("*" in self.origins or origin in self.origins):
            return
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Credentials"] = "true"
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            response.headers["Access-Control-Allow-Methods"] = self.methods
            if wanted := request.headers.get("Access-Control-Request-Headers"):
                response.headers["Access-Control-Allow-Headers"] = wanted
