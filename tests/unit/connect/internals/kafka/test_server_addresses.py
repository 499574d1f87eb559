"""``bootstrap.servers`` is pairs of host and port."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.internals.kafka.settings.conversion import servers

KEY = "bootstrap.servers"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("localhost:9092", "localhost:9092"),
        (" a:1 , b.example.com:65535,", "a:1,b.example.com:65535"),
        ("kafka_1:9092", "kafka_1:9092"),
        ("PLAINTEXT://host:9092,SASL_SSL://10.0.0.1:9093", "PLAINTEXT://host:9092,SASL_SSL://10.0.0.1:9093"),
        ("[::1]:9092", "[::1]:9092"),
        ("", ""),
    ],
)
def test_pairs_of_host_and_port_are_accepted(written: str, meant: str) -> None:
    assert servers(KEY, written) == meant


@pytest.mark.parametrize(
    ("written", "example"),
    [
        ("localhost", "localhost:9092"),
        ("a:1,kafka.example.com", "kafka.example.com:9092"),
        ("localhost:", "localhost:9092"),
        ("localhost:port", "localhost:9092"),
        (":9092", "localhost:9092"),
        ("http://host:9092/path", "localhost:9092"),
        ("http://host:9092", "localhost:9092"),
    ],
)
def test_anything_else_is_refused_with_an_example(written: str, example: str) -> None:
    with pytest.raises(ConfigError, match=f"is not of the form host:port. Write for example {example}$"):
        servers(KEY, written)
