"""A server with the timeline of a Mastodon instance and a place to post to, for the demo without a network.

Its timeline is ``GET /api/v1/timelines/public``: the newest first, ``limit`` at most, with ``min_id`` the posts that
follow that one immediately. It answers one request in five with 429, as busy servers do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

POSTS = [
    {
        "id": str(1000 + number),
        "created_at": f"2024-03-01T12:{number // 60:02d}:{number % 60:02d}.000Z",
        "content": f"<p>Post number {number}</p>",
        "account": {"acct": f"user{number % 7}@example.social"},
        "favourites_count": number * number % 13,
    }
    for number in range(200)
]


class Timeline:
    """What the server has been asked, and what was posted to it."""

    def __init__(self) -> None:
        self.requests = 0
        self.posted: list[Any] = []
        self.url = ""
        self._lock = threading.Lock()

    def is_busy(self) -> bool:
        """Whether this request is one that is refused for now."""
        with self._lock:
            self.requests += 1
            return self.requests % 5 == 0

    def page(self, limit: int, min_id: int | None) -> list[Any]:
        """A page of the timeline."""
        if min_id is None:
            return POSTS[:limit][::-1]
        return [post for post in POSTS if int(post["id"]) > min_id][:limit][::-1]

    def take(self, post: Any) -> None:
        """Keep what was posted."""
        with self._lock:
            self.posted.append(post)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeline: Timeline

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if self.timeline.is_busy():
            self._answer(429, {"error": "Too many requests"}, {"Retry-After": "0"})
            return
        min_id = int(query["min_id"]) if "min_id" in query else None
        self._answer(200, self.timeline.page(int(query.get("limit", "20")), min_id), {})

    def do_POST(self) -> None:
        self.timeline.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(201, {"taken": True}, {})

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def _answer(self, status: int, body: Any, headers: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} Told", "Content-Type: application/json", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + content)


@contextmanager
def serving() -> Iterator[Timeline]:
    """The server, on a free port of 127.0.0.1."""
    timeline = Timeline()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"timeline": timeline}))
    timeline.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield timeline
    finally:
        server.shutdown()
        server.server_close()
