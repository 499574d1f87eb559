"""Where the REST API listens."""

from __future__ import annotations

import socket

import pytest
import requests
from flask import Flask

from rest.server.server import RestServer

pytestmark = pytest.mark.integration


def test_a_listener_without_a_host_answers_on_every_interface() -> None:
    app = Flask("hello")
    app.add_url_rule("/", view_func=lambda: "hello")
    server = RestServer(["http://:0"])
    server.answer_with(app)
    hosts = ["127.0.0.1", "[::1]"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]

    answers = [requests.get(f"http://{host}:{server.port}/", timeout=30).text for host in hosts]
    server.close()

    assert answers == ["hello"] * len(hosts)


def test_headers_of_the_connection_are_the_servers() -> None:
    """``response.http.headers.config`` may name them."""
    app = Flask("hello")
    app.add_url_rule("/", view_func=lambda: ("hello", {"Keep-Alive": "timeout=1", "X-Mine": "1"}))
    server = RestServer(["http://127.0.0.1:0"])
    server.answer_with(app)

    answer = requests.get(f"http://127.0.0.1:{server.port}/", timeout=30)
    server.close()

    assert (answer.text, answer.headers["X-Mine"], answer.headers.get("Keep-Alive")) == ("hello", "1", None)
