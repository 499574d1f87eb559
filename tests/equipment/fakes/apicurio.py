"""Apicurio Registry over HTTP with both versions of its API, its schemas in memory, and failures on request."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response, jsonify, request

from equipment.fakes.schema_registry import served

__all__ = ["MemoryApicurio", "serving_apicurio"]

Name = tuple[str, str]


@dataclass(slots=True)
class MemoryApicurio:
    """The contents of the registry, its behaviour, and its requests."""

    authorization: str | None = None
    """The only ``Authorization`` header that it accepts, if it checks that header."""
    answers: deque[tuple[int, str]] = field(default_factory=deque)
    """The statuses and bodies of the next answers."""
    requests: list[str] = field(default_factory=list)
    """Method and path of every request."""
    contents: list[str] = field(default_factory=list)
    """The texts of schemas; the index of each is its content id minus one."""
    versions: list[tuple[Name, str]] = field(default_factory=list)
    """The artifact and the text of every version; the index of each is its global id minus one."""
    references: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """The references of texts."""
    url: str = ""

    def add(self, group: str, artifact: str, text: str, references: list[dict[str, str]] | None = None) -> int:
        """Register a schema as another version, unless the artifact has it, and return its global id."""
        if references:
            self.references[text] = references
        if text not in self.contents:
            # Other ids than global ones, so that nobody mixes them up.
            self.contents += ["", text]
        if ((group, artifact), text) not in self.versions:
            self.versions.append(((group, artifact), text))
        return self.versions.index(((group, artifact), text)) + 1

    def described(self, global_id: int) -> dict[str, Any]:
        """The description of a version."""
        (group, artifact), text = self.versions[global_id - 1]
        ids = {"globalId": global_id, "contentId": self.contents.index(text) + 1}
        return {
            **ids,
            "groupId": group,
            "artifactId": artifact,
            "version": str(self.of((group, artifact)).index(global_id) + 1),
        }

    def of(self, name: Name) -> list[int]:
        """The global ids of the versions of an artifact."""
        return [number for number, (each, _) in enumerate(self.versions, 1) if each == name]


@contextmanager
def serving_apicurio(registry: MemoryApicurio) -> Iterator[MemoryApicurio]:
    """Serve the registry on loopback."""
    with served(_application(registry)) as registry.url:
        yield registry


def _application(registry: MemoryApicurio) -> Flask:
    app = Flask("apicurio")

    @app.before_request
    def trouble() -> Any:
        registry.requests.append(f"{request.method} {request.path}")
        if registry.answers:
            status, body = registry.answers.popleft()
            return Response(body, status)
        if request.path != "/token" and registry.authorization not in (None, request.headers.get("Authorization")):
            return Response("", 401)
        return None

    @app.get("/apis/registry/<api>/ids/<kind>/<int:number>")
    def by_id(api: str, kind: str, number: int) -> Any:
        text = _text(registry, kind, number)
        return _missing(api, f"No {kind} {number}") if text is None else Response(text, content_type="application/json")

    @app.get("/apis/registry/<api>/ids/<kind>/<int:number>/references")
    def references(api: str, kind: str, number: int) -> Any:
        return jsonify(registry.references.get(_text(registry, kind, number) or "", []))

    @app.post("/apis/registry/v2/groups/<group>/artifacts")
    def create_in_2(group: str) -> Any:
        text = request.get_data(as_text=True)
        return jsonify(registry.described(registry.add(group, request.headers["X-Registry-ArtifactId"], text)))

    @app.post("/apis/registry/v3/groups/<group>/artifacts")
    def create_in_3(group: str) -> Any:
        body = request.get_json()
        number = registry.add(group, body["artifactId"], body["firstVersion"]["content"]["content"])
        return jsonify(artifact={}, version=registry.described(number))

    @app.post("/apis/registry/v2/groups/<group>/artifacts/<artifact>/meta")
    def search_in_2(group: str, artifact: str) -> Any:
        found = _same(registry, (group, artifact), request.get_data(as_text=True))
        return jsonify(registry.described(found[0])) if found else _missing("v2", "No such content")

    @app.post("/apis/registry/v3/search/versions")
    def search_in_3() -> Any:
        found = _same(registry, (request.args["groupId"], request.args["artifactId"]), request.get_data(as_text=True))
        return jsonify(count=len(found), versions=[registry.described(each) for each in found])

    @app.get("/apis/registry/v2/groups/<group>/artifacts/<artifact>/meta")
    @app.get("/apis/registry/v2/groups/<group>/artifacts/<artifact>/versions/<version>/meta")
    @app.get("/apis/registry/v3/groups/<group>/artifacts/<artifact>/versions/<version>")
    def version(group: str, artifact: str, version: str = "branch=latest") -> Any:
        ids = registry.of((group, artifact))
        if not ids or (version.isdecimal() and int(version) > len(ids)):
            return _missing(request.path.split("/")[3], f"No artifact {artifact}")
        return jsonify(registry.described(ids[int(version) - 1 if version.isdecimal() else -1]))

    @app.post("/token")
    def token() -> Any:
        return jsonify(access_token="t0ken", expires_in=600)

    return app


def _text(registry: MemoryApicurio, kind: str, number: int) -> str | None:
    if kind == "globalIds":
        return registry.versions[number - 1][1] if 0 < number <= len(registry.versions) else None
    return (registry.contents[number - 1] or None) if 0 < number <= len(registry.contents) else None


def _same(registry: MemoryApicurio, name: Name, text: str) -> list[int]:
    """The versions of an artifact with this text, up to white space."""
    return [each for each in registry.of(name) if json.loads(registry.versions[each - 1][1]) == json.loads(text)]


def _missing(api: str, reason: str) -> Response:
    told = {"message": reason, "error_code": 404} if api == "v2" else {"title": reason, "status": 404}
    answer = jsonify(**told, detail=reason, name="NotFoundException")
    answer.status_code = 404
    return answer
