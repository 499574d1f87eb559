"""What somebody who reaches the REST API can have a worker do: each was done to a worker once, and is refused now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests

from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import PATIENT, StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]


def put(worker: StandaloneWorker, path: str, config: dict[str, str]) -> requests.Response:
    return requests.put(worker.url() + path, json=config, timeout=90)


def errors(answer: requests.Response) -> dict[str, list[str]]:
    infos: dict[str, Any] = answer.json()
    values = [shown["value"] for shown in infos["configs"]]
    return {value["name"]: value["errors"] for value in values if value["errors"]}


@pytest.fixture
def importable(tmp_path: Path) -> Path:
    """A folder on the import path of a worker, as site-packages is."""
    folder = tmp_path / "importable"
    folder.mkdir()
    return folder


def write_module(worker: StandaloneWorker, topic: str, folder: Path, line: str) -> Path:
    """Have a file source and a file sink of a worker make a module of one line."""
    text, module = folder.parent / "text", folder / "way_in.py"
    text.write_text(f"{line}\n")
    source = {"connector.class": "FileStreamSource", "file": str(text), "topic": topic}
    sink = {"connector.class": "FileStreamSink", "file": str(module), "topics": topic}
    assert put(worker, "connectors/one/config", source).status_code == 201
    assert put(worker, f"connectors/two-{topic}/config", sink).status_code == 201
    wait_until("the module is written", lambda: module.exists() and module.read_text() == f"{line}\n", 90)
    return module


def test_a_module_that_a_sink_has_written_is_not_imported(
    standalone: MakeWorker, topic: str, tmp_path: Path, importable: Path
) -> None:
    worker = standalone(**PATIENT).start({"PYTHONPATH": str(importable)})
    ran = tmp_path / "ran"
    write_module(worker, topic, importable, f"open({str(ran)!r}, 'w')")
    source = {"connector.class": "FileStreamSource", "file": "/f", "topic": topic, "name": "three"}
    answer = put(worker, "connector-plugins/way_in.X/config/validate", source | {"connector.class": "way_in.X"})
    assert answer.status_code == 400
    assert "Class way_in.X is not listed in any plugins.toml of this worker" in answer.json()["message"]
    assert "or add it to plugin.import.allowlist in the worker's file" in answer.json()["message"]
    named = {
        "key.converter": "way_in.X",
        "value.converter": "way_in.X",
        "header.converter": "way_in.X",
        "transforms": "t",
        "transforms.t.type": "way_in.X",
        "transforms.t.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "way_in.X",
    }
    found = errors(put(worker, "connector-plugins/FileStreamSource/config/validate", source | named))
    classes = {key for key, value in named.items() if value == "way_in.X"}
    assert classes <= found.keys()
    assert all("plugin.import.allowlist" in found[key][0] for key in classes)
    assert put(worker, "connectors/three/config", source | named).status_code == 400
    assert requests.get(worker.url() + "connector-plugins/way_in.X/config", timeout=90).status_code == 404
    assert not ran.exists()


def test_a_module_that_the_worker_s_file_allows_is_a_plugin_only_if_its_source_says_so(
    standalone: MakeWorker, topic: str, tmp_path: Path, importable: Path
) -> None:
    ran = tmp_path / "ran"
    telling = f"open({str(ran)!r}, 'w').close()\n"
    (importable / "way_in.py").write_text(f"{telling}class X: pass\n")
    (importable / "allowed.py").write_text(
        f"{telling}from connectors.file import FileStreamSourceConnector\nclass X(FileStreamSourceConnector): pass\n"
    )
    worker = standalone(plugin_import_allowlist="way_in.*, allowed.*").start({"PYTHONPATH": str(importable)})
    config = {"file": str(tmp_path / "in"), "topic": topic}
    refused = put(worker, "connectors/refused/config", config | {"connector.class": "way_in.X"})
    assert refused.status_code == 400
    assert "According to its source, class way_in.X is not a Connector" in refused.json()["message"]
    assert not ran.exists()
    assert put(worker, "connectors/taken/config", config | {"connector.class": "allowed.X"}).status_code == 201
    worker.wait_for_states("taken", "RUNNING", "RUNNING")
    assert worker.status("taken")["type"] == "source"


class TokenEndpoint(ThreadingHTTPServer):
    """Keeps what is posted to it, and gives no token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Keeping)
        self.forms: list[dict[str, list[str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/token"


class _Keeping(BaseHTTPRequestHandler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.forms.append(parse_qs(body))
        self.send_response(400)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Be silent."""


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_file_is_posted_to_a_token_endpoint_only_while_the_worker_s_file_lists_both(
    bootstrap: str, topic: str, tmp_path: Path, endpoint: TokenEndpoint
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the content of a file of the worker")
    overrides = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.jwt.retriever.class": "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.oauthbearer.assertion.file": str(secret),
    }
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "in"), "topic": topic}
    config |= {f"producer.override.{key}": value for key, value in overrides.items()}
    lists = {"urls": endpoint.url, "files": str(secret)}
    allowing = {f"org_apache_kafka_sasl_oauthbearer_allowed_{what}": value for what, value in lists.items()}
    worker = DistributedWorker(tmp_path / "first", bootstrap, group=topic, **allowing)
    try:
        worker.start()
        assert put(worker, "connectors/c/config", config).status_code == 201
        posted = wait_until("the file is posted", lambda: endpoint.forms, 90)
        assert posted[0]["assertion"] == [secret.read_text()]
        worker.terminate()
        endpoint.forms.clear()
        # The configuration is in the config topic; a worker with another file takes it from there.
        worker = DistributedWorker(tmp_path / "second", bootstrap, group=topic)
        worker.start()
        status = worker.wait_for_states("c", "RUNNING", "FAILED")
        named = "Configuration producer.override.sasl.oauthbearer.token.endpoint.url cannot be used."
        assert named in status["tasks"][0]["trace"]
        assert "allowed.urls of the worker's file" in status["tasks"][0]["trace"]
        assert put(worker, "connectors/c/config", config).status_code == 400
        found = errors(put(worker, "connector-plugins/FileStreamSource/config/validate", config | {"name": "c"}))
        assert found.keys() == {
            "producer.override.sasl.oauthbearer.token.endpoint.url",
            "producer.override.sasl.oauthbearer.assertion.file",
        }
        assert endpoint.forms == []
    finally:
        worker.close()


def test_no_override_loads_a_library_into_a_client(standalone: MakeWorker, topic: str, tmp_path: Path) -> None:
    worker = standalone().start()
    config = {
        "connector.class": "FileStreamSource",
        "file": str(tmp_path / "in"),
        "topic": topic,
        "producer.override.security.protocol": "SSL",
        "producer.override.ssl.providers": f"default,{tmp_path}/evil.so",
    }
    answer = put(worker, "connectors/c/config", config)
    assert answer.status_code == 400
    text = "Configuration producer.override.ssl.providers cannot be used. Loading a shared library into a client"
    assert text in answer.json()["message"]


def test_spark_is_given_no_key_that_loads_code_unless_the_worker_s_file_allows_it(
    standalone: MakeWorker, topic: str, tmp_path: Path
) -> None:
    config = {
        "name": "c",
        "connector.class": "SparkSink",
        "topics": topic,
        "store.url": str(tmp_path / "lake"),
        "spark.driver.memory": "1g",
        "spark.jars": f"{tmp_path}/evil.jar",
        "spark.driver.extraJavaOptions": f"-javaagent:{tmp_path}/evil.jar",
        "spark.master": "spark://127.0.0.1:1",
    }
    worker = standalone().start()
    answer = put(worker, "connectors/c/config", config)
    assert answer.status_code == 400
    found = errors(put(worker, "connector-plugins/SparkSink/config/validate", config))
    assert found.keys() == {"spark.jars", "spark.driver.extraJavaOptions", "spark.master"}
    worker.terminate()
    allowing = standalone(connector_spark_config_override_allowlist="spark.jars,spark.driver.*,spark.master").start()
    assert errors(put(allowing, "connector-plugins/SparkSink/config/validate", config)) == {}
