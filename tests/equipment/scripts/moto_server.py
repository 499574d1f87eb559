"""Runs moto's server, in which conditional writes are atomic: moto itself looks, and writes later.

``python moto_server.py HOST PORT``
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, Final

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_CONDITIONS: Final = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


def main(host: str, port: str) -> None:
    """Serve until the process is killed."""
    served, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        is_conditional = environ["REQUEST_METHOD"] in ("PUT", "POST") and any(key in environ for key in _CONDITIONS)
        with one_at_a_time if is_conditional else nullcontext():
            answer: Iterable[bytes] = served(environ, start)
        return answer

    run_simple(host, int(port), application, threaded=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
