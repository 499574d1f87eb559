"""A worker that is told to end does so although somebody waits for an answer of it."""

from __future__ import annotations

import socket
import threading

import pytest
import requests
from flask import Flask

from rest.server.server import RestServer

pytestmark = pytest.mark.integration


class Slow:
    """An app whose answer takes until it is let go."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.answered = False
        self.app = Flask("slow")
        self.app.add_url_rule("/", view_func=self._answer)

    def _answer(self) -> str:
        self.asked.set()
        self.let_go.wait(60)
        self.answered = True
        return "at last"


def test_a_request_under_way_does_not_keep_the_server() -> None:
    slow = Slow()
    server = RestServer(["http://127.0.0.1:0"])
    server.answer_with(slow.app)
    port = server.port
    client = threading.Thread(target=lambda: requests.get(f"http://127.0.0.1:{port}/", timeout=60))
    client.start()
    assert slow.asked.wait(30)

    server.close()

    assert not slow.answered
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 5)
    slow.let_go.set()
    client.join(30)


def test_a_request_that_is_answered_soon_is_waited_for() -> None:
    slow = Slow()
    server = RestServer(["http://127.0.0.1:0"])
    server.answer_with(slow.app)
    answers: list[str] = []
    client = threading.Thread(
        target=lambda: answers.append(requests.get(f"http://127.0.0.1:{server.port}/", timeout=60).text)
    )
    client.start()
    assert slow.asked.wait(30)
    threading.Timer(0.3, slow.let_go.set).start()

    server.close()
    client.join(30)

    assert answers == ["at last"]
