"""A worker whose brokers ask every client for its certificate, with Java's stores for all its clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import requests

from equipment.brokers.acls import Acl
from equipment.brokers.key_stores import KEY_PASSWORD, PASSWORD
from equipment.brokers.secured import CERTIFIED, SecuredBroker
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import PATIENT, StandaloneWorker

pytestmark = pytest.mark.integration

KINDS: dict[str, dict[str, str]] = {
    "jks": {"ssl.key.password": KEY_PASSWORD, "ssl.truststore.type": "JKS"},
    "p12": {"ssl.keystore.type": "PKCS12"},
}


@pytest.fixture(scope="module")
def stores(secured: SecuredBroker) -> Path:
    """The stores of a user who may do everything."""
    operations = {"topic": "All", "group": "All"}
    secured.allow(Acl(CERTIFIED, operation, resource, "*") for resource, operation in operations.items())
    return secured.folder


MakeWorker = Callable[[type[StandaloneWorker], Mapping[str, str]], StandaloneWorker]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """What the workers have for temporary files. Its path is short: there are sockets in it."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def worker(secured: SecuredBroker, topic: str, tmp_path: Path, temporary: Path) -> Iterator[MakeWorker]:
    """Makes workers whose clients, of all kinds, have these settings."""
    workers: list[StandaloneWorker] = []

    def make(kind: type[StandaloneWorker], tls: Mapping[str, str]) -> StandaloneWorker:
        props = {f"{prefix}{key}": value for prefix in ("", "producer.", "consumer.") for key, value in tls.items()}
        workers.append(kind(tmp_path / topic, secured.addresses["SSL"], **PATIENT, **props))
        return workers[-1].start({"TMPDIR": str(temporary)})

    yield make
    for made in workers:
        made.close()


def settings(stores: Path, kind: str) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.keystore.location": str(stores / f"key.{kind}"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(stores / f"trust.{kind}"),
        "ssl.truststore.password": PASSWORD,
        **KINDS[kind],
    }


@pytest.mark.parametrize("mode", [StandaloneWorker, DistributedWorker], ids=["standalone", "distributed"])
@pytest.mark.parametrize("kind", KINDS)
def test_records_go_through_a_broker_that_knows_its_clients_by_certificate(
    worker: MakeWorker,
    stores: Path,
    mode: type[StandaloneWorker],
    kind: str,
    topic: str,
    tmp_path: Path,
    temporary: Path,
) -> None:
    running = worker(mode, settings(stores, kind))
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    create(running, "source", {"connector.class": "FileStreamSource", "file": str(source), "topic": topic})
    create(running, f"sink-{topic}", {"connector.class": "FileStreamSink", "file": str(sink), "topics": topic})
    wait_until("the lines have come through", lambda: sink.exists() and sink.read_text() == "one\ntwo\n", 60)
    left = [file for file in temporary.rglob("*") if file.is_file() and b"PRIVATE" in file.read_bytes()]
    assert left == [], "a key that is read out of its store is written nowhere"
    assert PASSWORD not in running.log()
    assert running.terminate() == 0


def test_a_worker_without_a_certificate_does_not_start(worker: MakeWorker, stores: Path) -> None:
    tls = {key: value for key, value in settings(stores, "p12").items() if not key.startswith("ssl.keystore")}
    refused = worker(DistributedWorker, tls | {"default.api.timeout.ms": "2000"})
    assert refused.wait() == 2
    assert "Check that this is the port of a broker, and that security.protocol" in refused.log()


def test_a_wrong_password_is_said_and_not_repeated(worker: MakeWorker, stores: Path) -> None:
    refused = worker(DistributedWorker, settings(stores, "jks") | {"ssl.keystore.password": "sesame-street"})
    assert refused.wait() == 2
    assert "ssl.keystore.password" in refused.log()
    assert "sesame-street" not in refused.log()


def create(worker: StandaloneWorker, name: str, config: dict[str, Any]) -> None:
    post: Callable[[], requests.Response] = lambda: requests.post(  # noqa: E731
        f"{worker.url()}connectors", json={"name": name, "config": config}, timeout=60
    )
    wait_until(f"{name} is created", lambda: post().status_code == 201, 60)
