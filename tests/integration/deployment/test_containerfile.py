"""The image of a worker: its file is linted, and its steps are done and its command run in a plain chroot."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from equipment.image_chroot import Image, build_image
from equipment.ports import own_port
from equipment.waiting import wait_until

ROOT = Path(__file__).parents[3]
FILE = ROOT / "Containerfile"


def test_it_has_no_fault_that_the_linter_knows() -> None:
    lint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([lint, FILE], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_names_of_the_ignore_file_say_the_same() -> None:
    assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: apt-get install debootstrap")
    folder = tmp_path_factory.mktemp("images")
    yield build_image(FILE, ROOT, "worker", folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_a_worker_runs_in_it_without_rights_and_stops_when_asked(
    image: Image, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    assert image.user == "1001"
    port = own_port()
    variables = {
        "CONNECT_BOOTSTRAP_SERVERS": bootstrap,
        "CONNECT_GROUP_ID": topic,
        "CONNECT_LISTENERS": f"http://127.0.0.1:{port}",
        "CONNECT_KEY_CONVERTER": "StringConverter",
        "CONNECT_VALUE_CONVERTER": "StringConverter",
    }
    for kind in ("CONFIG", "OFFSET", "STATUS"):
        variables[f"CONNECT_{kind}_STORAGE_TOPIC"] = f"{topic}-{kind.lower()}"
        variables[f"CONNECT_{kind}_STORAGE_REPLICATION_FACTOR"] = "1"
    writable = tmp_path / "sluice"
    writable.mkdir()
    os.chown(writable, 1001, 0)
    (writable / "in.txt").write_text("one\ntwo\n")
    log = tmp_path / "worker.log"
    process = image.start(writable, variables, log)
    try:
        wait_until("the worker is ready", lambda: _ready(port, process, log), 120)
        config = {"connector.class": "FileStreamSource", "file": "/var/lib/sluice/in.txt", "topic": topic}
        url = f"http://127.0.0.1:{port}/connectors/{topic}"
        assert requests.put(f"{url}/config", json=config, timeout=120).status_code == 201
        wait_until("the lines are read", lambda: _read(url) == 2, 120)
        health = [word.replace("localhost:8083", f"127.0.0.1:{port}") for word in image.health]
        assert image.run(health) == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)


def _ready(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return requests.get(f"http://127.0.0.1:{port}/health/ready", timeout=20).status_code == 200
    except requests.ConnectionError:
        return False


def _read(url: str) -> int:
    tasks = requests.get(f"{url}/status", timeout=60).json().get("tasks")
    return int(tasks[0].get("metrics", {}).get("source-record-write-total", 0)) if tasks else 0
