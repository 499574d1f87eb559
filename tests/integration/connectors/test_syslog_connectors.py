"""The syslog sources on real workers, with the programs that send to them: logger, rsyslog over TLS, loggen."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from connect.errors import ConnectError
from equipment.brokers.certificates import Authority
from equipment.brokers.topics import create_topic, read_topic
from equipment.ports import own_port
from equipment.servers.rsyslog import Rsyslog, loggen, queued
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]
JSON = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
HOST = "127.0.0.1"


def values(bootstrap: str, topic: str, count: int) -> list[dict[str, Any]]:
    """The values of the topic, once there are so many."""

    def enough() -> list[dict[str, Any]]:
        found = [json.loads(message.value() or b"") for message in read_topic(bootstrap, topic)]
        return found if len(found) >= count else []

    return wait_until(f"{topic} has {count} records", enough, 60)


def had(make: Callable[[], Any]) -> Any:
    """What is made, or a skip that names the reason why it cannot be had."""
    try:
        return make()
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


def test_confluent_s_configuration_and_logger(
    standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """A configuration of its own demonstrations, without changes but for port and topic."""
    create_topic(bootstrap, topic)
    port = own_port()
    worker = standalone(**JSON)
    worker.connector(
        "syslog-source",
        **{
            "tasks.max": "1",
            "topic": topic,
            "connector.class": "io.confluent.connect.syslog.SyslogSourceConnector",
            "syslog.port": str(port),
            "syslog.listener": "UDP",
            "confluent.license": "",
            "confluent.topic.bootstrap.servers": "broker:9092",
            "confluent.topic.replication.factor": "1",
        },
    )
    worker.start()
    worker.wait_for_states("syslog-source", "RUNNING", "RUNNING")
    to = ("logger", "-n", HOST, "-P", str(port), "-d", "-t", "app", "-p", "local3.warn")

    def sent(*options: str) -> dict[str, Any]:
        before = len(read_topic(bootstrap, topic))
        subprocess.run([*to, *options], check=True)
        return values(bootstrap, topic, before + 1)[-1]

    # The task says that it runs before it listens: the first message may come too early.
    wait_until("it listens", lambda: _is_bound(port))
    new = sent("--", "Grüße")
    assert (new["type"], new["facility"], new["level"], new["appName"]) == ("RFC5424", 19, 4, "app")
    assert (new["message"], new["version"], new["remoteAddress"]) == ("Grüße", 1, HOST)
    assert [element["id"] for element in new["structuredData"]] == ["timeQuality"]
    old = sent("--rfc3164", "--", "old")
    assert (old["type"], old["tag"], old["message"], old["version"]) == ("RFC3164", "app", "old", None)
    assert abs(old["date"] - new["date"]) < 120_000
    bare = sent("--rfc5424=notime,notq,nohost", "--", "bare")
    assert (bare["type"], bare["host"], bare["structuredData"], bare["message"]) == ("RFC5424", None, None, "bare")
    record = read_topic(bootstrap, topic)[0]
    assert (record.key(), record.timestamp()[0]) == (HOST.encode(), 1)
    wait_until("they are counted", lambda: _measured(worker, "syslog_messages_total") == 3)
    assert worker.terminate() == 0


def _measured(worker: StandaloneWorker, name: str) -> float:
    found = re.findall(rf"^sluice_plugin_{name}{{.*}} (.*)$", worker.get("metrics").text, re.MULTILINE)
    return float(found[0]) if found else 0.0


def _is_bound(port: int) -> bool:
    lines = Path("/proc/net/udp").read_text().splitlines()
    return any(f":{port:04X} " in line.split(" rem")[0] for line in lines)


def test_rsyslog_over_tls(standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic)
    authority, port = Authority(), own_port()
    identity = authority.sign(HOST)
    for name, text in (("ca", authority.pem), ("chain", identity.certificate_pem), ("key", identity.key_pem())):
        (tmp_path / f"{name}.pem").write_text(text)
    worker = standalone(**JSON)
    worker.connector(
        "tls",
        **{
            "connector.class": "SyslogSource",
            "topic": topic,
            "syslog.port": str(port),
            "syslog.listener": "TCPSSL",
            "syslog.ssl.cert.chain.path": str(tmp_path / "chain.pem"),
            "syslog.ssl.key.path": str(tmp_path / "key.pem"),
        },
    )
    worker.start()
    action = {
        "type": "omfwd",
        "target": HOST,
        "port": str(port),
        "protocol": "tcp",
        "TCP_Framing": "octet-counted",
        "template": "RSYSLOG_SyslogProtocol23Format",
        "StreamDriver": "ossl",
        "StreamDriverMode": "1",
        "StreamDriverAuthMode": "x509/certvalid",
    }
    daemon = had(
        lambda: Rsyslog(
            tmp_path / "rsyslog", queued(action), globals_=f'DefaultNetstreamDriverCAFile="{tmp_path}/ca.pem"'
        )
    ).start()
    try:
        daemon.log("one\ntwo", "-t", "app", "-p", "local3.warn")
        # rsyslog sends what it says itself, too, and again what it tried to send before the task listened.
        wait_until("it is there", lambda: any(value["appName"] == "app" for value in values(bootstrap, topic, 1)))
        found = next(value for value in values(bootstrap, topic, 1) if value["appName"] == "app")
    finally:
        daemon.close()
    assert (found["type"], found["appName"], found["message"]) == ("RFC5424", "app", "one#012two")
    assert worker.terminate() == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("listener", "kind"), [("TCP", "-S"), ("UDP", "-D")])
def test_loggen(standalone: MakeWorker, bootstrap: str, topic: str, listener: str, kind: str) -> None:
    """syslog-ng's generator of load, for a second."""
    create_topic(bootstrap, topic)
    port = own_port()
    worker = standalone(**JSON)
    worker.connector(
        "load",
        **{
            "connector.class": "SyslogSource",
            "topic": topic,
            "syslog.port": str(port),
            "syslog.listener": listener,
            "tasks.max": "2",
        },
    )
    worker.start()
    worker.wait_for_states("load", "RUNNING", "RUNNING", "RUNNING")
    listens = _is_bound if listener == "UDP" else _is_listening
    wait_until("it listens", lambda: listens(port))
    count = had(lambda: loggen("-i", kind, "-r", "2000", "-s", "200", "-I", "1", HOST, str(port)))
    found = values(bootstrap, topic, count)
    assert len(found) == count
    assert {(value["type"], value["host"], value["level"]) for value in found} == {("RFC3164", "localhost", 6)}


def _is_listening(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(f":{port:04X} " in line and " 0A " in line for line in lines)


def test_a_port_in_use_fails_the_task_and_says_what_to_do(standalone: MakeWorker, bootstrap: str, topic: str) -> None:
    worker = standalone(**JSON).start()
    config = {
        "connector.class": "SyslogSource",
        "topic": topic,
        "syslog.port": "514",
        "syslog.listen.address": "192.0.2.1",
    }
    answer = requests.put(f"{worker.url()}connectors/there/config", json=config, timeout=90)
    assert answer.status_code == 201
    trace = worker.wait_for_states("there", "RUNNING", "FAILED")["tasks"][0]["trace"]
    assert (
        "The task cannot listen on 192.0.2.1 port 514 (syslog.listen.address, syslog.port): this machine has no"
        in trace
    )
