"""``sluice mirror deploy`` on a worker that runs already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from equipment.brokers.topics import create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo


@pytest.fixture
def worker(bootstrap: str, standalone: Callable[..., StandaloneWorker]) -> StandaloneWorker:
    """A worker at the target, whose own converters are others than a mirror needs."""
    return standalone(bootstrap_servers=bootstrap).start()


def test_a_flow_becomes_three_connectors_and_goes_again(
    worker: StandaloneWorker, second_broker: BrokerInfo, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    # Others write heartbeats to the same clusters, and would have this flow lag behind now and then.
    source, target = f"A{topic[-12:]}", f"B{topic[-12:]}"
    props = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": second_broker.bootstrap_servers,
        f"{target}.bootstrap.servers": bootstrap,
        f"{source}->{target}.enabled": "true",
        "heartbeats.replication.enabled": "false",
        "topics": topic,
        "groups": topic,
        "replication.factor": "1",
        **{f"{kind}.topic.replication.factor": "1" for kind in ("offset-syncs", "checkpoints", "heartbeats")},
    }

    create_topic(second_broker.bootstrap_servers, topic)
    produce(second_broker.bootstrap_servers, topic, [b"one", b"two", b"three"])

    def deploy(*words: str, **more: str) -> Result:
        file.write_text("".join(f"{key} = {value}\n" for key, value in {**props, **more}.items()))
        return CliRunner().invoke(mirror, ["deploy", str(file), *words, "--url", worker.url()])

    names = [f"{source}-{target}-Mirror{kind}Connector" for kind in ("Source", "Heartbeat", "Checkpoint")]
    planned = deploy("--dry-run")
    assert (planned.exit_code, planned.stdout.splitlines()) == (3, [f"create {name}" for name in names])
    refused = deploy(topics="orders,orders")
    assert refused.exit_code == 1
    assert f"{names[0]}:" in refused.output
    assert "Nothing was changed." in refused.output
    assert worker.get("connectors").json() == []
    done = deploy()
    assert (done.exit_code, done.stdout.splitlines()) == (0, [f"created {name}" for name in names])
    config = worker.get(f"connectors/{names[0]}/config").json()
    assert config["value.converter"] == "org.apache.kafka.connect.converters.ByteArrayConverter"
    assert config["source.cluster.bootstrap.servers"] == second_broker.bootstrap_servers
    _check_numbers(worker, source, target, topic)
    _check_flow(worker, source, target)
    assert deploy().stdout == "Nothing to do.\n"
    changed = deploy(**{"tasks.max": "2"})
    assert changed.stdout.splitlines() == [f"updated {name}" for name in names]
    gone = deploy("--delete")
    assert (gone.exit_code, gone.stdout.splitlines()) == (0, [f"deleted {name}" for name in names])
    assert worker.get("connectors").json() == []


def _check_numbers(worker: StandaloneWorker, source: str, target: str, topic: str) -> None:
    """What was mirrored is told over REST and on the page."""
    name, remote = f"{source}-{target}-MirrorSourceConnector", f"{source}.{topic}"

    def numbers() -> dict[str, float]:
        tasks = worker.get(f"connectors/{name}/measurements").json()["tasks"]
        return {
            each["name"]: each["value"]
            for task in tasks
            for each in task["measurements"]
            if each["labels"] == {"source": source, "target": target, "topic": remote, "partition": "0"}
        }

    wait_until("all is mirrored", lambda: numbers().get("mirror_records_total") == 3.0, seconds=90)
    assert numbers()["mirror_lag_records"] == 0.0
    page = worker.get(f"ui/connectors/{name}/measurements").text
    assert f'<td class="code">{remote}</td>' in page


def _check_flow(worker: StandaloneWorker, source: str, target: str) -> None:
    """What was deployed is a flow over REST, and written again as it is shown it stays as it is."""
    path, connector = f"mirror/flows/{source}-%3E{target}", f"connectors/{source}-{target}-MirrorSourceConnector/config"
    config = worker.get(connector).json()
    wait_until("all of it runs", lambda: worker.get(path).json()["state"] == "RUNNING")
    shown = worker.get(path).json()
    assert (shown["state"], shown["lag"]["records"], shown["verified"]) == ("RUNNING", 0, None)
    assert requests.put(f"{worker.url()}{path}", json=shown["config"], timeout=60).status_code == 200
    assert worker.get(connector).json() == config
