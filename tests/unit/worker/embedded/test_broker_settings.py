from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError
from worker.embedded.broker.settings import BrokerConfig, Ports, is_plaintext, render_properties, server_properties

PORTS = Ports(19092, 19093)


def test_every_listener_is_on_loopback() -> None:
    properties = server_properties(PORTS, Path("/data"), {})
    assert properties["listeners"] == "CLIENT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:19092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:19093"


def test_old_records_are_kept_and_one_node_suffices() -> None:
    properties = server_properties(PORTS, Path("/data"), {})
    assert properties["log.retention.ms"] == "-1"
    factors = {key: value for key, value in properties.items() if key.endswith(("factor", "isr", "replicas"))}
    assert len(factors) == 7
    assert set(factors.values()) == {"1"}
    assert "auto.create.topics.enable" not in properties


def test_extra_properties_have_the_last_word() -> None:
    properties = server_properties(PORTS, Path("/data"), {"num.partitions": "3", "message.max.bytes": "9"})
    assert (properties["num.partitions"], properties["message.max.bytes"]) == ("3", "9")


@pytest.mark.parametrize("key", ["advertised.listeners", "log.dirs", "node.id", "process.roles"])
def test_what_the_broker_sets_itself_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"configuration {key}: set by the embedded broker"):
        server_properties(PORTS, Path("/data"), {key: "x"})


def test_clients_connect_in_plaintext_unless_the_protocol_map_says_otherwise() -> None:
    assert is_plaintext({"num.partitions": "1"})
    assert is_plaintext({"listener.security.protocol.map": "SECURE:SASL_SSL"})
    assert not is_plaintext({"listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"})


def test_more_listeners_stand_beside_the_brokers_own() -> None:
    extra = {"listeners": "SASL_SSL://127.0.0.1:19094, SECOND://127.0.0.1:19095"}
    properties = server_properties(PORTS, Path("/data"), extra | {"listener.security.protocol.map": "SECOND:SSL"})
    more = "SASL_SSL://127.0.0.1:19094,SECOND://127.0.0.1:19095"
    assert properties["listeners"] == f"CLIENT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093,{more}"
    assert properties["advertised.listeners"] == f"CLIENT://127.0.0.1:19092,{more}"
    protocols = properties["listener.security.protocol.map"].split(",")
    assert protocols == [
        *("CLIENT:PLAINTEXT", "CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", "SSL:SSL"),
        *("SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL", "SECOND:SSL"),
    ]


def test_properties_are_escaped_as_java_reads_them() -> None:
    rendered = render_properties({"a b:c": " C:\\x\n", "k": "a=b # ü😀"})
    assert rendered == "a\\ b\\:c=\\ C:\\\\x\\n\nk=a=b # \\u00fc\\ud83d\\ude00\n"


@pytest.mark.parametrize("heap", ["", "lots", "-1m", "256 m", "0"])
def test_a_heap_that_is_no_size_is_refused(heap: str) -> None:
    with pytest.raises(ConfigError, match="configuration heap: not a size"):
        BrokerConfig(heap=heap)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="configuration port: not a port; set it to a number from 0 to 65535"):
        BrokerConfig(port=port)
