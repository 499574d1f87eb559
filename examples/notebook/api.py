"""A small REST API with orders, in pages, so that the notebook needs no network."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

__all__ = ["serving"]

ORDERS = [
    {"id": 1, "region": "north", "price": 12.5, "items": [{"sku": "tea", "count": 2}]},
    {"id": 2, "region": "south", "price": 3.0, "items": [{"sku": "cup", "count": 1}]},
    {"id": 3, "region": "north", "price": 7.25, "items": []},
    {"id": 4, "region": "north", "price": 1.0, "items": [{"sku": "tea", "count": 1}, {"sku": "cup", "count": 4}]},
    {"id": 5, "region": "south", "price": 40.0, "items": [{"sku": "pot", "count": 1}]},
]
PAGE = 2


class _Orders(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        start = (int(query.get("page", ["1"])[0]) - 1) * PAGE
        body = json.dumps({"orders": ORDERS[start : start + PAGE]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the notebook quiet."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve the orders; gives the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Orders) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/orders"
        server.shutdown()
        thread.join()
