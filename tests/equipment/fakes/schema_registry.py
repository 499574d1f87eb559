"""A schema registry over HTTP, with its schemas in memory and failures on request."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Response, jsonify, request
from werkzeug.serving import make_server

from converters.protobuf.proto_schema import ProtoSchema

__all__ = ["MemoryRegistry", "served", "serving"]


@dataclass(slots=True)
class MemoryRegistry:
    """The contents of the registry, its behaviour, and its requests."""

    tells_versions: bool = True
    """Whether it answers requests for the versions of a schema; old registries do not."""
    tells_guids: bool = False
    """Whether schemas have GUIDs, as in newer registries."""
    authorization: str | None = None
    """The only ``Authorization`` header that it accepts, if it checks that header."""
    refusal: int = 401
    """The status with which it refuses others."""
    refused: set[str] = field(default_factory=set)
    """Subjects whose schemas are incompatible with any other."""
    troubles: deque[int] = field(default_factory=deque)
    """The HTTP statuses of the next answers."""
    answers: deque[tuple[int, str]] = field(default_factory=deque)
    """The statuses and bodies of the next answers."""
    requests: list[str] = field(default_factory=list)
    """Method and path of every request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """The headers of every request."""
    tokens: list[dict[str, Any]] = field(default_factory=list)
    """The answers to requests for tokens, in order."""
    schemas: list[dict[str, Any]] = field(default_factory=list)
    """The schemas; the index of each is its id minus one."""
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """The ids of the versions of every subject."""
    url: str = ""

    def add(self, subject: str, schema: Any, **more: Any) -> int:
        """Register a schema and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        entry = {"schema": text, **more}
        if entry not in self.schemas:
            self.schemas.append(entry)
        schema_id = self.schemas.index(entry) + 1
        versions = self.subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def version(self, subject: str, number: int) -> dict[str, Any]:
        """The document of a version."""
        schema_id = self.subjects[subject][number - 1]
        return {"subject": subject, "version": number, "id": schema_id, **self.document(schema_id)}

    def document(self, schema_id: int) -> dict[str, Any]:
        """A schema, with its GUID if it has one."""
        entry = self.schemas[schema_id - 1]
        return {**entry, "guid": self.guid(schema_id)} if self.tells_guids else entry

    def guid(self, schema_id: int) -> str:
        """The GUID of a schema, which follows from what it is."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(self.schemas[schema_id - 1], sort_keys=True)))


@contextmanager
def serving(registry: MemoryRegistry, tls: ssl.SSLContext | None = None) -> Iterator[MemoryRegistry]:
    """Serve the registry on loopback."""
    with served(_application(registry), tls) as registry.url:
        yield registry


@contextmanager
def served(application: Flask, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve an application on loopback, at the URL."""
    server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _application(registry: MemoryRegistry) -> Flask:
    app = Flask("schema registry")

    @app.before_request
    def trouble() -> Any:
        registry.requests.append(f"{request.method} {request.full_path.rstrip('?')}")
        registry.headers.append(dict(request.headers))
        if registry.troubles:
            return Response("trouble", registry.troubles.popleft())
        if registry.answers:
            status, body = registry.answers.popleft()
            return Response(body, status)
        if request.path != "/token" and registry.authorization not in (None, request.headers.get("Authorization")):
            return _error(registry.refusal, registry.refusal, "Unauthorized")
        return None

    @app.post("/subjects/<path:subject>/versions")
    def register(subject: str) -> Any:
        if subject in registry.refused:
            return _error(409, 409, "Schema being registered is incompatible with an earlier schema")
        document = request.get_json(force=True)
        schema_id = registry.add(subject, document.pop("schema"), **document)
        return jsonify(id=schema_id, **({"guid": registry.guid(schema_id)} if registry.tells_guids else {}))

    @app.post("/subjects/<path:subject>")
    def look_up(subject: str) -> Any:
        if subject not in registry.subjects:
            return _error(404, 40401, f"Subject '{subject}' not found.")
        text = request.get_json(force=True)["schema"]
        for number, schema_id in enumerate(registry.subjects[subject], 1):
            if registry.schemas[schema_id - 1]["schema"] == text:
                return jsonify(registry.version(subject, number))
        return _error(404, 40403, "Schema not found")

    @app.get("/subjects/<path:subject>/versions/<number>")
    def version(subject: str, number: str) -> Any:
        if subject not in registry.subjects:
            return _error(404, 40401, f"Subject '{subject}' not found.")
        count = len(registry.subjects[subject])
        return jsonify(_as_asked(registry.version(subject, count if number == "latest" else int(number))))

    @app.get("/schemas/ids/<int:schema_id>")
    def by_id(schema_id: int) -> Any:
        if not 0 < schema_id <= len(registry.schemas):
            return _error(404, 40403, f"Schema {schema_id} not found")
        return jsonify(_as_asked(registry.document(schema_id)))

    @app.get("/schemas/guids/<guid>")
    def by_guid(guid: str) -> Any:
        if not registry.tells_guids:
            return _error(404, 404, "HTTP 404 Not Found")
        for number, entry in enumerate(registry.schemas, 1):
            if registry.guid(number) == guid:
                return jsonify(_as_asked(entry))
        return _error(404, 40403, f"Schema {guid} not found")

    @app.get("/schemas/ids/<int:schema_id>/versions")
    def versions(schema_id: int) -> Any:
        if not registry.tells_versions:
            return _error(404, 404, "HTTP 404 Not Found")
        return jsonify(
            [
                {"subject": subject, "version": number}
                for subject, ids in registry.subjects.items()
                for number, each in enumerate(ids, 1)
                if each == schema_id
            ]
        )

    @app.post("/token")
    def token() -> Any:
        return jsonify(registry.tokens.pop(0)) if registry.tokens else Response("no", 401)

    return app


def _as_asked(entry: dict[str, Any]) -> dict[str, Any]:
    """A schema as it is, or of Protobuf as its descriptor in base64 where that is asked for."""
    if request.args.get("format") != "serialized":
        return entry
    file: Any = ProtoSchema(entry["schema"]).file
    return {**entry, "schema": base64.b64encode(file.serialized_pb).decode()}


def _error(status: int, code: int, message: str) -> Response:
    answer = jsonify(error_code=code, message=message)
    answer.status_code = status
    return answer
