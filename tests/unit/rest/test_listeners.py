"""Where a worker is said to be reached."""

from __future__ import annotations

import socket

import pytest

from connect.errors import ConfigError
from rest.server.listeners import advertised, parse_listeners
from worker.config.worker import StandaloneConfig

BASE = {
    "bootstrap.servers": "b:9092",
    "key.converter": "StringConverter",
    "value.converter": "StringConverter",
    "offset.storage.file.filename": "/tmp/offsets",
}
THIS = socket.getfqdn()


def address(listeners: str, **props: str) -> str:
    config = StandaloneConfig.parse({**BASE, **{f"rest.advertised.{key}": value for key, value in props.items()}})
    return advertised(config, parse_listeners("listeners", listeners.split(","))).url


@pytest.mark.parametrize(
    ("listeners", "props", "url"),
    [
        ("http://here:8083", {}, "http://here:8083/"),
        ("http://:8083", {}, f"http://{THIS}:8083/"),
        ("HTTP://0.0.0.0:8083", {}, f"http://{THIS}:8083/"),
        ("https://a:8443,http://b:8083", {}, "http://b:8083/"),
        ("https://a:8443,http://b:8083", {"listener": "https"}, "https://a:8443/"),
        ("https://a:8443,https://b:8444", {}, "https://a:8443/"),
        ("http://:8083", {"host.name": "there", "port": "80"}, "http://there:80/"),
        ("http://:8083", {"host.name": "there"}, "http://there:8083/"),
        ("http://[::1]:8083", {}, "http://[::1]:8083/"),
        ("http://:8083", {"listener": "HTTPS", "host.name": "proxy", "port": "443"}, "https://proxy:443/"),
    ],
)
def test_a_worker_is_reached_as_java_has_it(listeners: str, props: dict[str, str], url: str) -> None:
    assert address(listeners, **props) == url


@pytest.mark.parametrize(
    ("listeners", "props", "text"),
    [
        (
            "http://:8083",
            {"listener": "https"},
            r"rest.advertised.listener is https, but listeners \(http://:8083\)",
        ),
        (
            "http://:8083",
            {"listener": "ftp"},
            "Invalid value ftp for configuration rest.advertised.listener: Use http or",
        ),
        ("http://:8083", {"port": "0"}, "Invalid value 0 for configuration rest.advertised.port"),
        ("http://here", {}, "A listener must have a port"),
        ("http://here:99999", {}, "Invalid value http://here:99999 for configuration listeners: Not a URL"),
        ("ftp://here:21", {}, "A listener must begin with http:// or https://"),
    ],
)
def test_what_contradicts_itself_is_refused(listeners: str, props: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        address(listeners, **props)


@pytest.mark.parametrize(
    "listener",
    ["http://ann:s3cret@here", "ftp://ann:s3cret@here:21", "http://ann:s3cret/x@here:80", "http://ann:s3cret@here:x"],
)
def test_a_refused_listener_is_shown_without_its_password(listener: str) -> None:
    with pytest.raises(ConfigError, match="@here") as refused:
        address(listener)
    assert "s3cret" not in f"{refused.value}{refused.value.__cause__}"


def test_a_listener_is_shown_without_its_password() -> None:
    [listener] = parse_listeners("listeners", ["http://ann:s3cret@here:8083"])
    assert (listener.url, listener.host, listener.port) == ("http://[hidden]@here:8083", "here", 8083)
