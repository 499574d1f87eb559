"""Where the REST API listens."""

from __future__ import annotations

import socket

import pytest
import requests
from flask import Flask

from rest.server import RestServer

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
