"""A threaded HTTP server whose answers are functions of the test, and which records its requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Answer", "Asked", "HttpApi", "paged", "serving_api"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request; the names of its headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    body: bytes

    def parameter(self, name: str, default: str = "") -> str:
        """The first value of a parameter."""
        return self.query.get(name, [default])[0]

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: ``stream`` is sent piece by piece after the body; the last bytes of a ``cut`` body are never sent."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Iterator[bytes] | None = None
    cut: int = 0

    def content(self) -> bytes:
        """The body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


class HttpApi:
    """The routes of a server, and the requests that it got."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[Asked], Answer]] = {}
        self.asked: list[Asked] = []
        self.url = ""
        self.connections = 0
        """The number of connections so far."""
        self.closing = threading.Event()
        """Set when the server should end; slow answers wait for it."""
        self._lock = threading.Lock()

    def route(self, path: str, answer: Callable[[Asked], Answer] | Answer) -> None:
        """Set the answer to requests for a path, or for everything below it if it ends with a slash."""
        self.routes[path] = (lambda _: answer) if isinstance(answer, Answer) else answer

    def answer(self, asked: Asked) -> Answer:
        """The answer to a request."""
        with self._lock:
            self.asked.append(asked)
        found = self.routes.get(asked.path)
        if found is None:
            below = [path for path in self.routes if path.endswith("/") and asked.path.startswith(path)]
            found = self.routes[max(below, key=len)] if below else None
        return Answer(404, {"error": "not found"}) if found is None else found(asked)

    def asked_of(self, path: str) -> list[Asked]:
        """The requests for a path."""
        with self._lock:
            return [each for each in self.asked if each.path == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: HttpApi

    def setup(self) -> None:
        self.api.connections += 1
        super().setup()

    def handle_any(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = parse_qs(parts.query, keep_blank_values=True)
        answer = self.api.answer(Asked(self.command, parts.path, query, headers, self.rfile.read(length)))
        content = b"" if self.command == "HEAD" else answer.content()
        lines = [f"HTTP/1.1 {answer.status} Answered"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        if answer.stream is None:
            lines.append(f"Content-Length: {len(content)}")
        else:
            lines.append("Connection: close")
            self.close_connection = True
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        if answer.cut:
            self.close_connection = True
        self.wfile.write(head + content[: len(content) - answer.cut])
        for piece in answer.stream or ():
            self.wfile.write(piece)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Do not log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def server_bind(self) -> None:
        # HTTPServer's own method looks up the host name, which takes long if no name server answers.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: killed clients close their connections."""


@contextmanager
def serving_api(context: ssl.SSLContext | None = None) -> Iterator[HttpApi]:
    """A server on a free port of 127.0.0.1."""
    api = HttpApi()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    api.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def paged(items: Sequence[Any], size: int) -> Callable[[Asked], Answer]:
    """A list in pages: by ``offset``, by ``page``, by ``cursor``, with the next link in the body and in a header."""

    def answer(asked: Asked) -> Answer:
        if "page" in asked.query:
            start = (int(asked.parameter("page")) - 1) * size
        else:
            start = int(asked.parameter("offset") or asked.parameter("cursor") or 0)
        part, following = items[start : start + size], start + size
        more = following < len(items)
        link = f"{asked.path}?cursor={following}"
        body: dict[str, Any] = {"items": list(part), "more": more, "cursor": str(following) if more else None}
        body["total"] = len(items)
        body["next"] = link if more else None
        headers = {"X-Total-Count": str(len(items))}
        if more:
            headers["Link"] = f'<{link}>; rel="next", <{asked.path}>; rel="first"'
        return Answer(200, body, headers)

    return answer
